// The whole page: which group's answer, bars and charts are shown, the table, and the open row.

const KINDS = { gap: "The gap", compiling: "Does compiling pay", history: "From version to version" }; // those behind tabs

function showChoices() {
  for (const select of byId("choose").elements) {
    const axis = select.name;
    const values = [...new Set(data.groups.map((group) => value(group, axis)))];
    const options = values.map((text) => element("option", { value: text }, text));
    if (values.length > 1) options.unshift(element("option", { value: "" }, "all"));
    select.replaceChildren(...options);
    select.value = state[axis];
  }
  const statuses = [...new Set(rows.map((row) => row.status))].sort();
  byId("status").replaceChildren(element("option", { value: "" }, "all"), ...statuses.map((text) => element("option", { value: text }, text)));
  byId("status").value = state.status;
  if (byId("filter").value !== state.filter) byId("filter").value = state.filter;
  byId("all-columns").checked = state.columns === "all";
}

// Cards, bars and their choice. Rows are compared within a group only, so of several groups there is no answer.
function showAnswer(groups) {
  const only = groups.length === 1 ? groups[0] : null;
  for (const part of document.querySelectorAll(".card[data-group], #bars-section [data-group]")) part.hidden = Number(part.dataset.group) !== only;
  for (const button of document.querySelectorAll("[data-choose]")) button.setAttribute("aria-pressed", String(Number(button.dataset.choose) === only));
  byId("bars-section").hidden = only === null;
  byId("where").hidden = only !== null;
  byId("where").textContent = `${groups.length} groups are chosen. Rows are compared only within a group: choose a workload, phase, device and precision.`;
}

function showCharts(groups) {
  const here = new Set(groups);
  const group = data.charts.map((chart) => chart.group).find((one) => here.has(one));
  const kinds = Object.keys(KINDS).filter((kind) => data.charts.some((chart) => chart.group === group && chart.kind === kind));
  const kind = kinds.includes(state.chart) ? state.chart : kinds[0];
  byId("tabs").replaceChildren(...kinds.map((one) => element("button", {
    type: "button", role: "tab", id: `tab-${one}`, "aria-selected": String(one === kind), tabindex: one === kind ? "0" : "-1",
    onclick: () => { state.chart = one; show(); byId(`tab-${one}`).focus(); },
  }, KINDS[one])));
  for (const figure of document.querySelectorAll("figure.chart")) {
    const tab = figure.dataset.kind in KINDS; // the others are always shown
    figure.hidden = Number(figure.dataset.group) !== group || (tab && figure.dataset.kind !== kind);
    if (tab) {
      figure.setAttribute("role", "tabpanel");
      figure.setAttribute("aria-labelledby", `tab-${figure.dataset.kind}`);
    }
  }
  byId("charts").hidden = !data.charts.length;
  byId("no-chart").hidden = kinds.length > 0;
}

// The row of a bar or of a point in a chart; a point's label begins with the row's name and a colon.
function rowAt(node) {
  const bar = node.closest("[data-row]");
  if (bar) return { row: rows[Number(bar.dataset.row)], node: bar };
  const point = node.closest(".chart svg [aria-label]");
  if (!point) return null;
  const group = Number(point.closest("figure").dataset.group);
  const label = point.getAttribute("aria-label");
  const named = (row) => label.startsWith(`${row.system} @ ${row.environment}: `) || label.startsWith(`${row.system}: `);
  const row = rows.find((one) => one.group === group && named(one));
  return row ? { row, node: point } : null;
}

function listenToPictures() {
  const main = document.querySelector("main");
  main.addEventListener("click", (event) => {
    const chosen = event.target.closest("[data-choose]");
    const found = rowAt(event.target);
    if (chosen) { chooseGroup(data.groups[Number(chosen.dataset.choose)]); shown = PAGE; show(); }
    else if (found) openRow(found.row);
  });
  for (const part of [byId("bars-section"), ...document.querySelectorAll("figure.chart")]) {
    part.addEventListener("mouseover", (event) => {
      const found = rowAt(event.target);
      if (found) showHint(found.row, found.node, event.clientX + 12); else hideHint();
    });
    part.addEventListener("mouseleave", hideHint);
  }
}

function openRow(row) {
  state.row = row.key;
  writeAddress();
  openDetails(row);
}

function show() {
  const groups = data.groups.map((group, index) => (matches(group) ? index : -1)).filter((index) => index >= 0);
  showChoices();
  showAnswer(groups);
  showCharts(groups);
  showTable();
  writeAddress();
}

function restore() {
  readAddress();
  show();
  const row = state.row ? rows.find((one) => one.key === state.row) : null;
  if (row) openDetails(row);
  else if (dialog.open) dialog.close();
}

byId("choose").addEventListener("change", (event) => { choose(event.target.name, event.target.value); shown = PAGE; show(); });
byId("choose").addEventListener("submit", (event) => event.preventDefault());
byId("all-columns").addEventListener("change", (event) => { state.columns = event.target.checked ? "all" : ""; show(); });
byId("status").addEventListener("change", (event) => { state.status = event.target.value; show(); });
byId("filter").addEventListener("input", (event) => { state.filter = event.target.value; shown = PAGE; show(); });
byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tabs = [...byId("tabs").children];
  if (step) tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length].click();
});
for (const link of document.querySelectorAll("[data-skip]")) {
  link.addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); byId("results").scrollIntoView(); });
}
dialog.addEventListener("close", () => {
  const key = state.row;
  state.row = "";
  writeAddress();
  // The focus is back where it was. If it was nowhere, it goes to the row, and the page stays where it is.
  const node = document.activeElement === document.body && [...byId("table").tBodies[0].rows].find((one) => one.row && one.row.key === key);
  if (node) node.focus({ preventScroll: true });
  hideHint();
});
addEventListener("hashchange", restore);
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
listenToPictures();
listenToTable();
restore();
