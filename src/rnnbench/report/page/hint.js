// The hint of a row under the pointer or in focus: interval, samples, environment.

const hint = byId("hint");
let pointed = null; // the row's element, and the horizontal position

function showHint(row, target, x) {
  const measured = known(row.wall_s);
  hint.replaceChildren(
    element("p", {}, element("b", {}, row.system)),
    element("p", { class: "quiet" }, row.description),
    measured
      ? element("p", {}, `${marked(seconds(row.wall_s), row.uncertain)} ${span(row.wall_low_s, row.wall_high_s, row.wall_s)} a batch; ${row.batches} batches in ${row.launches.length} launch${row.launches.length === 1 ? "" : "es"}`)
      : element("p", {}, row.reason || row.shown),
    drawSamples(row, 360, 90),
    element("p", { class: "quiet" }, `${row.environment}: ${environmentOf(row)}${known(row.threads) ? `, ${row.threads} threads` : ""}`),
  );
  pointed = { target, x };
  placeHint();
}

function placeHint() {
  if (!pointed) return;
  const { target, x } = pointed;
  hint.hidden = false;
  const box = target.getBoundingClientRect();
  const below = box.bottom + hint.offsetHeight + 12 < innerHeight;
  hint.style.top = `${Math.max(4, below ? box.bottom + 6 : box.top - hint.offsetHeight - 6)}px`;
  hint.style.left = `${Math.max(4, Math.min(x, innerWidth - hint.offsetWidth - 12))}px`;
}

function hideHint() {
  pointed = null;
  hint.hidden = true;
}

addEventListener("scroll", placeHint, { passive: true });
