"use strict";
(() => {
  const told = JSON.parse(document.getElementById("told").textContent);
  const BACKWARD = 6;
  const longest = Math.max(1, ...told.map(part => part.backward.length));
  const last = BACKWARD - 1 + longest;
  const byId = id => document.getElementById(id);
  let position = 0;

  /** Positions 0 to 5 are statements; after them each is one node further back. */
  const statement = () => Math.min(position, BACKWARD);
  const stepsBack = () => Math.max(0, position - BACKWARD + 1);

  const label = (part, place) => [part.operators[place], part.names[place]].filter(Boolean).join(" ");

  function where() {
    if (position === 0) return "Before the first statement";
    if (position < BACKWARD) return `Statement ${position} of 6`;
    return `Statement 6 of 6, backward: ${stepsBack()} of ${longest}`;
  }

  function classesOf(part, place) {
    const now = statement(), back = part.backward.slice(0, stepsBack());
    if (part.born[place] > now) return ["absent"];
    if (now === BACKWARD) {
      if (back[back.length - 1] === place) return ["current"];
      return back.includes(place) ? ["walked"] : [];
    }
    return now > 0 && part.of[place] === now ? ["current"] : [];
  }

  function seen(part, now) {
    const there = part.born.filter(born => born <= now).length;
    const count = `${there} ${there === 1 ? "node" : "nodes"} in the graph`;
    if (now === BACKWARD) {
      const reached = Math.min(stepsBack(), part.backward.length);
      if (!reached) return count;
      const at = `at ${label(part, part.backward[reached - 1])}`;
      return reached < part.backward.length ? `${count}; ${at}` : `${count}; ${at}; ${part.values[now]}`;
    }
    return [count, part.values[now]].filter(Boolean).join("; ");
  }

  function show(part, number) {
    const article = byId(`part${number}`), now = statement();
    article.querySelectorAll(".node").forEach((node, place) => {
      node.classList.remove("absent", "current", "walked");
      node.classList.add(...classesOf(part, place));
    });
    article.querySelectorAll(".edge").forEach(edge => {
      const ends = [edge.dataset.from, edge.dataset.to].map(Number);
      edge.classList.toggle("absent", ends.some(place => part.born[place] > now));
    });
    article.querySelectorAll(".code li").forEach((line, index) => {
      line.classList.toggle("current", index + 1 === now);
      line.classList.toggle("done", index + 1 < now);
      if (index + 1 === now) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    article.querySelector(".seen").textContent = seen(part, now);
    article.querySelector(".note").textContent = part.notes[now] || "";
    reveal(article);
  }

  /** Within its frame only: the page itself stays where it is. */
  function reveal(article) {
    const node = article.querySelector(".node.current");
    if (!node) return;
    const frame = article.querySelector("figure"), box = node.getBoundingClientRect(), around = frame.getBoundingClientRect();
    if (box.left < around.left || box.right > around.right) {
      frame.scrollLeft += box.left - around.left - (around.width - box.width) / 2;
    }
    if (box.top < around.top || box.bottom > around.bottom) {
      frame.scrollTop += box.top - around.top - (around.height - box.height) / 2;
    }
  }

  function update() {
    const choices = [...document.querySelectorAll(".choice")].map(choice => Number(choice.value));
    told.forEach((part, number) => {
      byId(`part${number}`).hidden = !choices.includes(number);
      if (choices.includes(number)) show(part, number);
    });
    byId("where").textContent = where();
    byId("position").value = position;
    byId("first").disabled = byId("back").disabled = position === 0;
    byId("next").disabled = byId("last").disabled = position === last;
  }

  function go(to) {
    position = Math.max(0, Math.min(last, to));
    update();
    history.replaceState(null, "", `#at=${position}`);
  }

  function start() {
    const asked = /^#at=(\d+)$/.exec(location.hash);
    position = asked ? Math.min(last, Number(asked[1])) : 0;
    update();
  }

  byId("position").max = last;
  byId("position").addEventListener("input", event => go(Number(event.target.value)));
  byId("first").addEventListener("click", () => go(0));
  byId("back").addEventListener("click", () => go(position - 1));
  byId("next").addEventListener("click", () => go(position + 1));
  byId("last").addEventListener("click", () => go(last));
  document.querySelectorAll(".choice").forEach(choice => choice.addEventListener("change", update));
  window.addEventListener("hashchange", start);
  document.addEventListener("keydown", event => {
    if (event.target.closest("select, input, figure, pre") || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = {ArrowRight: position + 1, ArrowLeft: position - 1, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  });
  start();
})();
