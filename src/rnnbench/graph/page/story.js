"use strict";
(() => {
  const parts = JSON.parse(document.getElementById("parts").textContent);
  const BACKWARD = 6;
  const longest = Math.max(1, ...parts.map(part => part.backward.length));
  const last = BACKWARD - 1 + longest;
  const byId = id => document.getElementById(id);
  let position = 0;

  /** Positions 0 to 5 are statements; each later position is one more node of the backward pass. */
  const statement = () => Math.min(position, BACKWARD);
  const nodesVisited = () => Math.max(0, position - BACKWARD + 1);

  const label = (part, node) => [part.operators[node], part.names[node]].filter(Boolean).join(" ");

  function where() {
    if (position === 0) return "Before the first statement";
    if (position < BACKWARD) return `Statement ${position} of 6`;
    return `Statement 6 of 6, backward pass: ${nodesVisited()} of ${longest}`;
  }

  function classesOf(part, node) {
    const now = statement(), back = part.backward.slice(0, nodesVisited());
    if (part.born[node] > now) return ["absent"];
    if (now === BACKWARD) {
      if (back[back.length - 1] === node) return ["current"];
      return back.includes(node) ? ["walked"] : [];
    }
    return now > 0 && part.of[node] === now ? ["current"] : [];
  }

  function seen(part, now) {
    const there = part.born.filter(born => born <= now).length;
    const count = `${there} ${there === 1 ? "node" : "nodes"} in the graph`;
    if (now === BACKWARD) {
      const reached = Math.min(nodesVisited(), part.backward.length);
      if (!reached) return count;
      const at = `at ${label(part, part.backward[reached - 1])}`;
      return reached < part.backward.length ? `${count}; ${at}` : `${count}; ${at}; ${part.values[now]}`;
    }
    return [count, part.values[now]].filter(Boolean).join("; ");
  }

  function show(part, number) {
    const article = byId(`part${number}`), now = statement();
    article.querySelectorAll(".node").forEach((element, node) => {
      element.classList.remove("absent", "current", "walked");
      element.classList.add(...classesOf(part, node));
    });
    article.querySelectorAll(".edge").forEach(edge => {
      const ends = [edge.dataset.from, edge.dataset.to].map(Number);
      edge.classList.toggle("absent", ends.some(node => part.born[node] > now));
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

  /** Scrolls within the figure only: the page itself does not move. */
  function reveal(article) {
    const current = article.querySelector(".node.current");
    if (!current) return;
    const frame = article.querySelector("figure"), box = current.getBoundingClientRect(), around = frame.getBoundingClientRect();
    if (box.left < around.left || box.right > around.right) {
      frame.scrollLeft += box.left - around.left - (around.width - box.width) / 2;
    }
    if (box.top < around.top || box.bottom > around.bottom) {
      frame.scrollTop += box.top - around.top - (around.height - box.height) / 2;
    }
  }

  function update() {
    const choices = [...document.querySelectorAll(".choice")].map(choice => Number(choice.value));
    parts.forEach((part, number) => {
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
    position = asked ? Math.min(last, Number(asked[1])) : 1; // it opens on the first statement
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
