"use strict";
// Roles that the theme leaves out.

function mend() {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  // the copy buttons of code are no landmarks
  for (const bar of document.querySelectorAll("nav.md-code__nav")) {
    const box = document.createElement("div");
    box.className = bar.className;
    box.append(...bar.childNodes);
    bar.replaceWith(box);
  }
  // what scrolls must be reached by a keyboard
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
}

addEventListener("DOMContentLoaded", () => {
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  mend();
});
addEventListener("resize", mend);
