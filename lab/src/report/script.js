"use strict";
// Plays the runs on their maps: the whole run in steps, or a stretch of it frame by frame. Everything else on the page
// works without this.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = ["rts", "cts", "data", "ack"];
  // So many milliseconds on the screen for one on the air, in a stretch.
  const SLOWER = 40;
  // So long a whole run takes on the screen.
  const WHOLE_MS = 25000;
  // Packets up to which a queue has each of its shades.
  const SHADES = [0, 2, 5, 10, 20, 49];
  const LARGEST = 15;
  const points = JSON.parse(document.getElementById("frames").textContent);

  function shape(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    return made;
  }

  function stepAt(arm, nowUs, endUs) {
    const steps = arm.nodes.length && arm.nodes[0].sent ? arm.nodes[0].sent.length : 0;
    return steps ? Math.min(steps - 1, Math.max(0, Math.floor(nowUs / endUs * steps))) : -1;
  }

  function placeOf(node, step) {
    return node.way && step >= 0 ? node.way[step] : node.at;
  }

  // What every node did in a step of the whole run.
  function drawStep(arm, step, most) {
    const shown = [];
    for (const node of arm.nodes) {
      const [cx, cy] = placeOf(node, step);
      if (!node.sent) continue;
      const size = (count) => 5 + LARGEST * Math.sqrt(count / most);
      if (node.sent[step]) shown.push(shape("circle", { class: "busy", cx, cy, r: size(node.sent[step]) }));
      if (node.lost[step]) shown.push(shape("circle", { class: "f-lost", cx, cy, r: size(node.lost[step]) }));
      const shade = SHADES.findIndex((packets) => node.queue[step] <= packets);
      shown.push(shape("circle", { class: "queue q" + (shade < 0 ? SHADES.length : shade), cx, cy, r: 5 }));
    }
    return shown;
  }

  // The frames that are on the air at an instant.
  function drawFrames(arm, nowUs, step) {
    const shown = [];
    for (const [at, lasts, from, to, kind, lost] of arm.frames) {
      if (at > nowUs) break;
      // A frame of 300 us would be gone before the eye has it: it fades over a millisecond.
      if (nowUs > at + lasts + 1000 || from < 0) continue;
      const opacity = nowUs <= at + lasts ? 1 : 1 - (nowUs - at - lasts) / 1000;
      const style = "f-" + (lost ? "lost" : KINDS[kind]);
      const [x1, y1] = placeOf(arm.nodes[from], step);
      if (lost && to >= 0) {
        const [cx, cy] = placeOf(arm.nodes[to], step);
        shown.push(shape("circle", { class: style, cx, cy, r: 12, opacity }));
      } else if (to >= 0) {
        const [x2, y2] = placeOf(arm.nodes[to], step);
        shown.push(shape("line", { class: style, x1, y1, x2, y2, opacity }));
      } else {
        shown.push(shape("circle", { class: style, cx: x1, cy: y1, r: 16, opacity }));
      }
    }
    return shown;
  }

  // One map at an instant. Lines and rings that stand still belong to places where nodes may be no more.
  function draw(map, arm, nowUs, data, isWhole) {
    const step = stepAt(arm, nowUs, data.end_us);
    const drawn = isWhole ? drawStep(arm, step, data.most) : drawFrames(arm, nowUs, step);
    map.querySelector(".air").replaceChildren(...drawn);
    map.classList.add("played");
    if (!arm.nodes.some((node) => node.way)) return;
    map.classList.add("moving");
    map.querySelectorAll(".at").forEach((node, nth) => {
      node.setAttribute("transform", "translate(" + placeOf(arm.nodes[nth], step).join(" ") + ")");
    });
  }

  function duration(us) {
    return (us / 1e6).toFixed(us % 1e6 ? 1 : 0) + " s";
  }

  // What can be played: from when to when, and how fast.
  function choices(data) {
    const whole = { from: 0, to: data.end_us, isWhole: true, name: "the whole run, " + duration(data.end_us) };
    const stretches = data.stretches.map(([from, to]) => {
      return { from, to, isWhole: false, name: Math.round((to - from) / 1000) + " ms from " + duration(from) + " on" };
    });
    return data.end_us > 0 ? [whole, ...stretches] : stretches;
  }

  for (const player of document.querySelectorAll(".player")) {
    const data = points[Number(player.dataset.point)];
    const maps = player.parentElement.querySelectorAll(".map");
    const [button, select, range, output] = player.querySelectorAll("button, select, input, output");
    for (const arm of data.arms) arm.frames.sort((a, b) => a[0] - b[0]);
    // One scale for all arms, so that their discs can be compared.
    const sent = data.arms.flatMap((arm) => arm.nodes.flatMap((node) => node.sent || []));
    data.most = sent.reduce((most, of) => Math.max(most, of), 1);
    const all = choices(data);
    select.append(...all.map((choice, nth) => new Option(choice.name, String(nth))));
    let chosen = all[0];
    let nowUs = chosen.from;
    let last = 0;
    let playing = false;
    const show = () => {
      maps.forEach((map, nth) => draw(map, data.arms[nth], nowUs, data, chosen.isWhole));
      range.value = String(Math.round((nowUs - chosen.from) / Math.max(1, chosen.to - chosen.from) * 1000));
      output.textContent = chosen.isWhole
        ? (nowUs / 1e6).toFixed(1) + " s" : ((nowUs - chosen.from) / 1000).toFixed(1) + " ms";
    };
    const step = (time) => {
      if (!playing) return;
      const pace = chosen.isWhole ? (chosen.to - chosen.from) / WHOLE_MS : 1000 / SLOWER;
      nowUs += (time - last) * pace;
      last = time;
      if (nowUs > chosen.to + (chosen.isWhole ? 0 : 2000)) nowUs = chosen.from;
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
      nowUs = chosen.from + Number(range.value) / 1000 * (chosen.to - chosen.from);
      show();
    });
    select.addEventListener("change", () => {
      chosen = all[Number(select.value)];
      nowUs = chosen.from;
      show();
    });
    player.hidden = false;
  }

  // A figure as one picture: its charts below each other, with what the page's style sheet gives them written out.
  const STYLED = ["display", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "opacity", "font-size", "font-weight", "font-family", "text-anchor", "paint-order"];
  const WIDTH = 720;

  function written(svg) {
    const copy = svg.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [svg, ...svg.querySelectorAll("*")].forEach((element, nth) => {
      const style = getComputedStyle(element);
      copies[nth].setAttribute("style", STYLED.map((name) => name + ":" + style.getPropertyValue(name)).join(";"));
    });
    copy.removeAttribute("data-numbers");
    return copy;
  }

  function headingOf(svg) {
    const panel = svg.closest(".panel");
    return panel ? panel.querySelector("h4").textContent.trim() : "";
  }

  function shownCharts(figure) {
    return [...figure.querySelectorAll("svg")].filter((svg) => svg.getClientRects().length);
  }

  const KEY = { size: 16, letter: 8.6, high: 25, swatch: 13 };

  // A figure's legend in lines below its charts, and its height.
  function legend(figure, top, colour) {
    const shapes = [];
    let [x, y] = [12, top];
    const words = (text) => {
      const style = { "font-size": KEY.size, "font-family": "sans-serif", fill: colour };
      const line = shape("text", { x, y: y + KEY.size, ...style });
      line.textContent = text;
      shapes.push(line);
      x += text.length * KEY.letter + 18;
    };
    for (const part of figure.querySelectorAll(".legend")) {
      for (const node of part.childNodes) {
        const text = node.textContent.trim();
        const swatch = node.firstElementChild;
        const wide = text.length * KEY.letter + (swatch ? KEY.swatch + 6 : 0);
        if (x + wide > WIDTH && x > 12) [x, y] = [12, y + KEY.high];
        if (swatch) {
          const style = getComputedStyle(swatch);
          const border = parseFloat(style.borderTopWidth) ? style.borderTopColor : "none";
          const look = { fill: style.backgroundColor, stroke: border };
          shapes.push(shape("rect", { x, y: y + 3, width: KEY.swatch, height: KEY.swatch, rx: 3, ...look }));
          x += KEY.swatch + 6;
        }
        if (text) words(text);
      }
      [x, y] = [12, y + KEY.high];
    }
    return { shapes, height: y - top };
  }

  // Windows that lie over each other share one chart's axes: a picture has each arm's own.
  function picture(figure) {
    const over = document.getElementById("over");
    const was = over && over.checked;
    if (over) over.checked = false;
    const taken = drawn(figure);
    if (over) over.checked = was;
    return taken;
  }

  function drawn(figure) {
    const whole = shape("svg", { xmlns: SVG });
    const card = getComputedStyle(figure);
    let height = 12;
    const words = (text, size) => {
      height += size + 6;
      const style = { "font-size": size, "font-family": "sans-serif", fill: card.color };
      const line = shape("text", { x: 12, y: height, ...style });
      line.textContent = text;
      whole.append(line);
      height += 6;
    };
    words(figure.querySelector("h3").textContent, 20);
    for (const svg of shownCharts(figure)) {
      if (headingOf(svg)) words(headingOf(svg), 16);
      const box = svg.viewBox.baseVal;
      const chart = written(svg);
      const tall = WIDTH * box.height / box.width;
      const place = { x: 12, y: height, width: WIDTH, height: tall, overflow: "visible" };
      for (const key of Object.keys(place)) chart.setAttribute(key, place[key]);
      whole.append(chart);
      height += tall + 8;
    }
    const below = legend(figure, height, card.color);
    whole.append(...below.shapes);
    height += below.height;
    const [width, tall] = [WIDTH + 24, Math.ceil(height + 12)];
    const around = { width, height: tall, viewBox: "0 0 " + width + " " + tall };
    for (const key of Object.keys(around)) whole.setAttribute(key, around[key]);
    whole.prepend(shape("rect", { width, height: tall, fill: card.backgroundColor }));
    return { text: new XMLSerializer().serializeToString(whole), width, height: tall };
  }

  // The numbers of every shape of a figure, with its point and its arm.
  const COLUMNS = ["point", "arm", "shape", "x", "y", "x_low", "x_high", "y_low", "y_high", "seed", "runs", "what"];

  function numbers(figure) {
    const arms = Array.from(document.querySelectorAll(".toggles label"), (label) => label.textContent.trim());
    // As the laboratory's own CSV: an apostrophe before each part that a spreadsheet takes for a formula.
    const formula = /(^|[;\t\n\r])(?=(?:[^\S\t\n\r]|")*[=+\-@＝＋－＠])/g;
    const isNumber = (text) => text.trim() !== "" && !isNaN(text);
    const guarded = (text) => isNumber(text) ? text : text.replace(formula, "$1'");
    const quoted = (text) => '"' + text.replaceAll('"', '""') + '"';
    const cell = (text) => guarded(text) !== text || /[",;\t\n\r]/.test(text) ? quoted(guarded(text)) : text;
    const folded = figure.closest("details");
    const rows = [COLUMNS];
    for (const svg of figure.querySelectorAll("svg[data-numbers]")) {
      const now = {
        point: folded ? folded.querySelector("summary").textContent : "",
        what: svg.getAttribute("aria-label"),
      };
      for (const line of svg.dataset.numbers.split("\n").filter(Boolean)) {
        const [shape, classes, x, y, title, ...more] = line.split("|");
        if (shape[0] === "=") {
          now[shape.slice(1)] = classes;
          continue;
        }
        const nth = / a(\d+)( |$)/.exec(" " + classes);
        const arm = nth ? arms[Number(nth[1])] : headingOf(svg);
        const [x_low, x_high, y_low, y_high, seed, runs] = more;
        const row = [now.point, arm, shape, x, y, x_low, x_high, y_low, y_high, seed, runs, title || now.what];
        rows.push(row.map((text) => text || ""));
      }
    }
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function savePng(figure) {
    const { text, width, height } = picture(figure);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(figure.id + ".png", blob), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }

  for (const figure of document.querySelectorAll("figure")) {
    const ways = {
      SVG: () => save(figure.id + ".svg", new Blob([picture(figure).text], { type: "image/svg+xml" })),
      PNG: () => savePng(figure),
      CSV: () => save(figure.id + ".csv", new Blob([numbers(figure)], { type: "text/csv" })),
    };
    const take = document.createElement("p");
    take.className = "take";
    for (const name of Object.keys(ways)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.title = "save this figure as " + name;
      button.addEventListener("click", ways[name]);
      take.append(button);
    }
    figure.append(take);
  }
  // What a test asks for: it cannot look into saved files.
  window.hopwiseReport = { picture, numbers };

  // Paper unfolds nothing; of a large trial all would be more than anybody reads.
  addEventListener("beforeprint", () => {
    if (document.body.classList.contains("large")) return;
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  document.documentElement.dataset.ready = "yes";
})();
