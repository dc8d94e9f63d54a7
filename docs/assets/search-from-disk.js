"use strict";
// A browser starts no worker from the disk. The search's worker is a plain script that receives and
// posts messages, so a hidden frame can run it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.waiting = [];
      addEventListener("message", (event) => {
        if (event.source === frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      frame.addEventListener("load", () => {
        this.send = (data) => frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
        for (const data of this.waiting) this.send(data);
      });
      frame.srcdoc = `<script>
        var postMessage = (data) => parent.postMessage(data, "*");
        var importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.head.append(script);
        })));
      </` + `script><script src="${new URL(url, location.href)}"></` + "script>";
      document.body.append(frame);
    }
    set onmessage(listener) { this.addEventListener("message", listener); }
    postMessage(data) { if (this.send) this.send(data); else this.waiting.push(data); }
    terminate() {}
  };
}
