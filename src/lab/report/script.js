"use strict";
// Plays the last frames of the runs on their maps. Everything else on the page works without this.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = ["rts", "cts", "data", "ack"];
  // So many milliseconds on the screen for one on the air.
  const SLOWER = 25;
  const points = JSON.parse(document.getElementById("frames").textContent);

  function shape(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    return made;
  }

  // What is on the air of one map at an instant.
  function draw(layer, arm, nowUs) {
    const shown = [];
    for (const [at, lasts, from, to, kind, lost] of arm.frames) {
      if (at > nowUs) break;
      // A frame of 300 us would be gone before the eye has it: it fades over a millisecond.
      if (nowUs > at + lasts + 1000 || from < 0) continue;
      const opacity = nowUs <= at + lasts ? 1 : 1 - (nowUs - at - lasts) / 1000;
      const style = "f-" + (lost ? "lost" : KINDS[kind]);
      const [x1, y1] = arm.nodes[from];
      if (lost && to >= 0) {
        const [cx, cy] = arm.nodes[to];
        shown.push(shape("circle", { class: style, cx, cy, r: 12, opacity }));
      } else if (to >= 0) {
        const [x2, y2] = arm.nodes[to];
        shown.push(shape("line", { class: style, x1, y1, x2, y2, opacity }));
      } else {
        shown.push(shape("circle", { class: style, cx: x1, cy: y1, r: 16, opacity }));
      }
    }
    layer.replaceChildren(...shown);
  }

  for (const player of document.querySelectorAll(".player")) {
    const data = points[Number(player.dataset.point)];
    const layers = player.parentElement.querySelectorAll(".map .air");
    const [button, range, output] = player.querySelectorAll("button, input, output");
    for (const arm of data.arms) arm.frames.sort((a, b) => a[0] - b[0]);
    let nowUs = 0;
    let last = 0;
    let playing = false;
    const show = () => {
      layers.forEach((layer, nth) => draw(layer, data.arms[nth], nowUs));
      range.value = String(Math.round(nowUs / Math.max(1, data.span_us) * 1000));
      output.textContent = (nowUs / 1000).toFixed(1) + " ms";
    };
    const step = (time) => {
      if (!playing) return;
      nowUs += (time - last) * 1000 / SLOWER;
      last = time;
      if (nowUs > data.span_us + 2000) nowUs = 0;
      show();
      requestAnimationFrame(step);
    };
    button.addEventListener("click", () => {
      playing = !playing;
      button.textContent = playing ? "pause" : "play";
      last = performance.now();
      if (playing) requestAnimationFrame(step);
    });
    range.addEventListener("input", () => {
      nowUs = Number(range.value) / 1000 * data.span_us;
      show();
    });
    player.hidden = false;
  }

  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  document.documentElement.dataset.ready = "yes";
})();
