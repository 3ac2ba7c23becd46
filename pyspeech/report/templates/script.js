"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const read = (element, name) => JSON.parse(element.dataset[name]);

  // Filters: an example is shown where one of its entries has every chosen value; the worst of these entries decides its place.
  for (const box of all(".examples")) {
    const selects = all("select[data-key]", box), cards = all(".example", box), count = box.querySelector(".count");
    const choose = () => {
      const wanted = selects.filter((select) => select.value).map((select) => [select.dataset.key, select.value]);
      const ranked = [];
      for (const card of cards) {
        const entries = read(card, "entries");
        const matches = entries.map((entry) => wanted.every(([key, value]) => String(entry[key]) === value));
        const ranks = entries.filter((_, index) => matches[index]).map((entry) => entry.rank);
        card.hidden = !ranks.length;
        const notes = all(".notes li", card);
        entries.filter((entry) => entry.note).forEach((entry, index) => {
          notes[index].classList.toggle("match", wanted.length > 0 && matches[entries.indexOf(entry)]);
        });
        if (ranks.length) ranked.push([Math.max(...ranks), card]);
      }
      ranked.sort((one, other) => other[0] - one[0]).forEach(([, card]) => box.append(card));
      const ordered = new Set(ranked.map(([rank]) => rank)).size > 1;
      count.textContent = `${ranked.length} of ${cards.length}${ordered ? ", worst first" : ""}`;
    };
    box.addEventListener("change", choose);
    choose();
  }

  // Thresholds: the marker in the chart and the figures of the table follow the slider.
  for (const box of all(".threshold")) {
    const { x, rows } = read(box, "values"), slider = box.querySelector("input"), figure = box.querySelector("figure");
    const [low, high] = read(figure, "limits"), [left, top, right, bottom] = read(figure, "frame");
    const show = () => {
      const index = Number(slider.value), place = left + ((x[index] - low) / (high - low)) * (right - left);
      box.querySelector(".marker").setAttribute("d", `M${place} ${top}V${bottom}`);
      box.querySelector(".at").textContent = x[index];
      for (const row of all("tr[data-row]", box)) {
        for (const cell of all("td[data-column]", row)) {
          const values = rows[row.dataset.row][cell.dataset.column];
          if (values) cell.textContent = values[index].toFixed(2);
        }
      }
    };
    slider.addEventListener("input", show);
    show();
  }

  // Examples: click to play from there, zoom, and a line that runs along while they play.
  let now = null;
  const sounds = () => all("audio");
  const stop = () => sounds().forEach((sound) => sound.pause());
  // Stopped before it has begun is no failure.
  const play = (sound) => sound.play().catch((error) => error.name === "AbortError" || console.warn("cannot play", sound.src, error.name));
  const select = (card, jump = true) => {
    if (now) now.classList.remove("now");
    now = card;
    now.classList.add("now");
    if (jump) { now.scrollIntoView({ block: "center" }); now.focus({ preventScroll: true }); }
  };
  // Ticks of the time axis at multiples of 1, 2 or 5 times a power of ten, at least 70 pixels apart.
  const drawTicks = (look, stretch) => {
    if (!stretch.clientWidth) return;
    const offset = Number(look.dataset.offset), seconds = Number(look.dataset.seconds), ticks = [];
    const least = (70 * seconds) / stretch.clientWidth, power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let index = Math.ceil(offset / step); index * step <= offset + seconds; index++) {
      const tick = document.createElement("i");
      tick.style.left = `${(100 * (index * step - offset)) / seconds}%`;
      tick.textContent = (index * step).toFixed(digits);
      ticks.push(tick);
    }
    stretch.querySelector(".ticks").replaceChildren(...ticks);
  };
  const zoom = (card, factor) => {
    const stretch = card.querySelector(".stretch");
    if (!stretch) return;
    const value = Math.min(40, Math.max(1, (Number(stretch.style.getPropertyValue("--zoom")) || 1) * factor));
    stretch.style.setProperty("--zoom", value);
    const head = card.querySelector(".head"), look = card.querySelector(".look");
    if (!head.hidden) look.scrollLeft = head.offsetLeft - look.clientWidth / 2;
  };
  for (const card of all(".example")) {
    const look = card.querySelector(".look"), sound = card.querySelector("audio"), head = card.querySelector(".head");
    all("[data-zoom]", card).forEach((button) => button.addEventListener("click", () => zoom(card, Number(button.dataset.zoom))));
    card.addEventListener("pointerdown", () => select(card, false));
    for (const each of all("audio", card)) each.addEventListener("play", () => sounds().forEach((other) => other !== each && other.pause()));
    if (!look) continue;
    const seconds = Number(look.dataset.seconds), stretch = card.querySelector(".stretch");
    new ResizeObserver(() => drawTicks(look, stretch)).observe(stretch);
    const move = (time) => { head.hidden = false; head.style.left = `${(100 * Math.min(time, seconds)) / seconds}%`; };
    stretch.addEventListener("click", (event) => {
      const time = ((event.clientX - stretch.getBoundingClientRect().left) / stretch.clientWidth) * seconds;
      move(time);
      if (!sound) return;
      sound.currentTime = time;
      play(sound);
    });
    if (sound) {
      const follow = () => { move(sound.currentTime); if (!sound.paused) requestAnimationFrame(follow); };
      sound.addEventListener("play", follow);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA|BUTTON|AUDIO|SUMMARY)$/.test(event.target.tagName)) return;
    const shown = all(".example").filter((card) => !card.hidden), index = shown.indexOf(now);
    if (event.key === "n" && shown.length) { stop(); select(shown[Math.min(index + 1, shown.length - 1)]); }
    else if (event.key === "p" && shown.length) { stop(); select(shown[Math.max(index - 1, 0)]); }
    else if (event.key === " " && now && now.querySelector("audio")) {
      const playing = all("audio", now).find((sound) => !sound.paused);
      if (playing) playing.pause(); else play(now.querySelector("audio"));
    }
    else if (event.key === "s") all("audio").forEach((sound) => { sound.pause(); sound.currentTime = 0; });
    else if ((event.key === "+" || event.key === "-") && now) zoom(now, event.key === "+" ? 1.6 : 0.625);
    else return;
    event.preventDefault();
  });

  // What is folded away is printed too.
  addEventListener("beforeprint", () => all("details").forEach((part) => { part.dataset.was = part.open; part.open = true; }));
  addEventListener("afterprint", () => all("details").forEach((part) => { part.open = part.dataset.was === "true"; }));
})();
