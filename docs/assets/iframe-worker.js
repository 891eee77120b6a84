// Search runs in a worker, and a page on the disk may start none. There, and only there, a hidden frame does its work.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.appendChild(frame);
      this.frame = frame.contentWindow;
      this.waiting = [];
      // What the worker says goes to whoever listens to it here.
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = new URL(address, location.href).href;
      script.onload = () => {
        this.ready = true;
        for (const data of this.waiting) this.tell(data);
      };
      frame.contentDocument.body.appendChild(script);
    }
    tell(data) {
      this.frame.dispatchEvent(new MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.ready) this.tell(data); else this.waiting.push(data);
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
