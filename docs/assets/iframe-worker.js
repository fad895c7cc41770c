'use strict';

// The search runs in a worker, and browsers start none for a page that was
// opened as a file. There an iframe in the page runs the worker's script.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      this.frame.addEventListener('load', () => this.start(url), { once: true });
      document.documentElement.append(this.frame);
    }

    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = data =>
          this.dispatchEvent(new MessageEvent('message', { data }));
      const script = inside.document.createElement('script');
      script.src = String(new URL(url, location.href));
      script.addEventListener('load', () => {
        const sent = this.waiting;
        this.waiting = null;
        sent.forEach(data => this.postMessage(data));
      });
      inside.document.head.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent('message', { data }));
      }
    }

    terminate() {
      this.frame.remove();
    }
  };
}
