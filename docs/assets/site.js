"use strict";
// Wide tables and code scroll; a keyboard must be able to reach what scrolls.
function reachable() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .highlight code, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
