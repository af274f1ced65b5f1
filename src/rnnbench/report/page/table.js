// The table: the chosen rows, filtered and sorted. Ranked rows are above the line in every order.

const PAGE = 300; // rows drawn at once; a button shows more

// name in the address, heading, sort key, cell, class
const COLUMNS = [
  { name: "system", heading: "system", key: (row) => row.system, cell: systemCell, class: "system" },
  { name: "bar", heading: "", cell: barCell, class: "bar" },
  { name: "wall", heading: "wall", key: (row) => row.wall_s, cell: (row) => marked(seconds(row.wall_s), row.uncertain), class: "number" },
  { name: "interval", heading: "95 % interval", key: (row) => row.wall_high_s - row.wall_low_s, cell: (row) => span(row.wall_low_s, row.wall_high_s, row.wall_s), class: "number" },
  { name: "elapsed", heading: "elapsed", key: (row) => row.elapsed_s, cell: (row) => (known(row.elapsed_s) ? `${seconds(row.elapsed_s)} (×${row.batches})` : NONE), class: "number" },
  { name: "rate", heading: "seq/s", key: (row) => row.sequences_per_s, cell: (row) => amount(row.sequences_per_s), class: "number" },
  { name: "ratio", heading: "ratio", key: (row) => row.ratio, cell: (row) => marked(times(row.ratio), row.ratio_uncertain), class: "number" },
  { name: "first", heading: "first call", key: (row) => row.first_call_s, cell: (row) => seconds(row.first_call_s), class: "number" },
  { name: "compile", heading: "compiling", key: (row) => row.compile_s, cell: (row) => seconds(row.compile_s), class: "number" },
  { name: "memory", heading: "memory", key: (row) => row.memory_bytes, cell: (row) => bytes(row.memory_bytes), class: "number" },
  { name: "limit", heading: "of limit", key: (row) => row.limit_share, cell: (row) => marked(share(row.limit_share), row.uncertain), class: "number" },
  { name: "operators", heading: "operators", key: (row) => row.operators, cell: (row) => whole(row.operators), class: "number" },
  { name: "host", heading: "no operator", key: (row) => row.host_share, cell: (row) => share(row.host_share), class: "number" },
  { name: "new-batch", heading: "new batch size", key: (row) => row.new_batch_s, cell: (row) => reshaped(row.new_batch_s, row.new_batch), class: "number" },
  { name: "new-length", heading: "new length", key: (row) => row.new_length_s, cell: (row) => reshaped(row.new_length_s, row.new_length), class: "number" },
  { name: "status", heading: "status", key: (row) => row.status, cell: statusCell, class: "status" },
];

// Left out where the window is too narrow for all, the first of these first: the status stays in sight.
const LEAST = ["new-length", "new-batch", "elapsed", "host", "operators", "first", "rate", "limit", "compile", "memory", "interval", "bar"];
document.head.append(element("style", {}, LEAST.map((name) => `#table[data-without~="${name}"] .is-${name} { display: none; }`).join("\n")));

let shown = PAGE;
let visible = [];
let longest = 1;
let columns = COLUMNS; // those that are not empty in all visible rows

function systemCell(row) {
  const where = AXES.filter((axis) => state[axis] === "").map((axis) => value(row.place, axis));
  const place = [...where, ...(row.many ? [row.environment] : [])].join(" · ");
  const parts = row.system.split("/").flatMap((part, index) => (index ? ["/", element("wbr"), part] : [part])); // may be broken after a slash
  return [...parts, place ? element("span", { class: "quiet" }, ` ${place}`) : null];
}

function barCell(row) {
  if (!known(row.wall_s)) return null;
  const part = (time) => `${(100 * time) / longest}%`;
  return element("div", { class: "track", "aria-hidden": "true" },
    element("div", { class: "fill", style: `width:${part(row.wall_s)}` }),
    element("div", { class: "whisker", style: `left:${part(row.wall_low_s)};width:${part(row.wall_high_s - row.wall_low_s)}` }));
}

// The cost of the first call with another shape, and whether the program was kept.
function reshaped(cost, outcome) {
  return known(cost) ? `${seconds(cost)}, ${outcome}` : NONE;
}

function statusCell(row) {
  const badge = element("span", { class: "badge" }, row.shown);
  return [badge, row.reason ? element("span", { class: "reason" }, `: ${row.reason}`) : null];
}

function chosenRows() {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = data.groups.map(matches);
  return rows.filter((row) => {
    if (!groups[row.group] || (state.status && row.status !== state.status)) return false;
    const text = [row.system, row.environment, row.shown, row.reason, row.description, row.place.workload].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function sorted(chosen) {
  const column = COLUMNS.find((one) => one.name === state.sort && one.key);
  const sign = state.order === "down" ? -1 : 1;
  const missing = (key) => !known(key) || Number.isNaN(key);
  const keyed = chosen.map((row, index) => ({ row, index, key: column ? column.key(row) : row.wall_s }));
  keyed.sort((a, b) => {
    if (a.row.counts !== b.row.counts) return a.row.counts ? -1 : 1;
    if (!column && !a.row.counts && a.row.status !== b.row.status) return data.below.indexOf(a.row.status) - data.below.indexOf(b.row.status);
    if (missing(a.key) || missing(b.key)) return missing(a.key) - missing(b.key) || a.index - b.index;
    if (a.key < b.key) return -sign;
    return a.key > b.key ? sign : a.index - b.index;
  });
  return keyed.map((one) => one.row);
}

function showTable() {
  const chosen = chosenRows();
  const environments = new Map();
  for (const row of chosen) {
    const name = `${row.group}|${row.system}`;
    environments.set(name, (environments.get(name) || new Set()).add(row.environment));
  }
  for (const row of chosen) row.many = environments.get(`${row.group}|${row.system}`).size > 1;
  visible = sorted(chosen);
  longest = visible.reduce((most, row) => Math.max(most, row.wall_high_s ?? 0), 0) || 1;
  const kept = (column) => column.class !== "number" || visible.some((row) => known(column.key(row)));
  columns = COLUMNS.filter((column) => column.name === state.sort || kept(column));
  byId("table").tHead.replaceChildren(element("tr", {}, columns.map(headCell)));
  const body = byId("table").tBodies[0];
  const part = visible.slice(0, shown);
  body.replaceChildren(...part.map((row, index) => tableRow(row, index, index > 0 && part[index - 1].counts && !row.counts)));
  if (!part.length) body.append(element("tr", {}, element("td", { colspan: columns.length }, "No row matches.")));
  byId("count").textContent = `${visible.length} row${visible.length === 1 ? "" : "s"}`;
  fitTable();
  const left = visible.length - part.length;
  byId("more").hidden = left <= 0;
  byId("more").textContent = `Show ${Math.min(left, PAGE)} more of ${left}`;
}

function fitTable() {
  const table = byId("table"), frame = table.parentElement;
  const without = [];
  table.dataset.without = "";
  if (state.columns === "all") return;
  for (const name of LEAST) {
    if (frame.scrollWidth <= frame.clientWidth) break;
    if (name === state.sort) continue;
    without.push(name);
    table.dataset.without = without.join(" ");
  }
}

const classOf = (column) => `${column.class} is-${column.name}`;

function headCell(column) {
  const numeric = column.class === "number" ? `number is-${column.name}` : `is-${column.name}`;
  if (!column.key) return element("td", { class: numeric, "aria-hidden": "true" });
  const active = state.sort === column.name || (state.sort === "" && column.name === "wall");
  const order = !active ? null : state.order === "down" ? "descending" : "ascending";
  const sort = () => {
    state.order = active && state.order === "up" ? "down" : "up";
    state.sort = column.name;
    show();
    byId("table").tHead.querySelector(`[data-column="${column.name}"] button`).focus();
  };
  return element("th", { scope: "col", class: numeric, "aria-sort": order, "data-column": column.name }, element("button", { type: "button", onclick: sort }, column.heading));
}

function tableRow(row, index, line) {
  const node = element("tr", {
    tabindex: index === 0 ? "0" : "-1",
    class: [row.tone, row.counts ? null : "below", row.best ? "best" : null, line ? "line" : null].filter(Boolean).join(" "),
    "data-status": row.status,
    "aria-haspopup": "dialog",
  }, cells(row));
  node.row = row;
  return node;
}

// A row without a time has its reason in place of numbers.
function cells(row) {
  if (known(row.wall_s)) return columns.map((column) => element("td", { class: classOf(column) }, column.cell(row)));
  return [
    element("td", { class: "system" }, systemCell(row)),
    element("td", { class: "status", colspan: columns.length - 1 }, statusCell(row)),
  ];
}

// One listener for all rows, since there may be thousands.
function listenToTable() {
  const body = byId("table").tBodies[0];
  const rowOf = (event) => { const node = event.target.closest("tr"); return node && node.row ? node : null; };
  body.addEventListener("click", (event) => { const node = rowOf(event); if (node) openRow(node.row); });
  body.addEventListener("keydown", (event) => {
    const node = rowOf(event);
    if (!node) return;
    const next = { ArrowDown: node.nextElementSibling, ArrowUp: node.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild }[event.key];
    if (next) next.focus();
    else if (event.key === "Enter" || event.key === " ") openRow(node.row);
    else if (event.key === "Escape") hideHint();
    else return;
    event.preventDefault();
  });
  body.addEventListener("focusin", (event) => {
    const node = rowOf(event);
    if (!node) return;
    for (const other of body.querySelectorAll('tr[tabindex="0"]')) other.tabIndex = -1;
    node.tabIndex = 0;
    if (node.matches(":focus-visible")) showHint(node.row, node, node.getBoundingClientRect().left + 40);
  });
  body.addEventListener("focusout", hideHint);
  body.addEventListener("mouseover", (event) => { const node = rowOf(event); if (node) showHint(node.row, node, event.clientX + 12); });
  body.addEventListener("mouseleave", hideHint);
  new ResizeObserver(fitTable).observe(byId("table").parentElement);
  byId("more").addEventListener("click", () => { shown += PAGE; showTable(); });
}
