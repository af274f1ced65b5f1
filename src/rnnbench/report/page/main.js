// The whole page: the choices at the top, the summary, the charts, the table, and the open row.

const KINDS = { flexibility: "Speed over flexibility", gap: "The gap", bars: "Time of one batch", compiling: "Does compiling pay", history: "From version to version" };

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
}

function showSummary(groups) {
  const only = groups.length === 1 ? data.groups[groups[0]] : null;
  byId("where").textContent = only
    ? `${only.workload} (${only.shape}) · ${only.phase} · ${only.device} · ${only.precision} · ${only.machine}`
    : `${groups.length} groups are chosen. Rows are compared only within a group: choose a workload, phase, device and precision.`;
  byId("says").replaceChildren(...(only ? only.summary : []).map((one) => element("p", { "data-kind": one.kind }, one.text)));
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
    figure.hidden = !(Number(figure.dataset.group) === group && figure.dataset.kind === kind);
    if (!figure.hidden) figure.setAttribute("aria-labelledby", `tab-${kind}`);
  }
  byId("no-chart").hidden = kinds.length > 0;
  byId("no-chart").textContent = data.charts.length ? "This group has no charts: rnnbench report --charts sets how many groups have them." : "This report has no charts, or nothing was measured.";
}

function openRow(row) {
  state.row = row.key;
  writeAddress();
  openDetails(row);
}

function show() {
  const groups = data.groups.map((group, index) => (matches(group) ? index : -1)).filter((index) => index >= 0);
  showChoices();
  showSummary(groups);
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
byId("status").addEventListener("change", (event) => { state.status = event.target.value; show(); });
byId("filter").addEventListener("input", (event) => { state.filter = event.target.value; shown = PAGE; show(); });
byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tabs = [...byId("tabs").children];
  if (step) tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length].click();
});
document.querySelector("[data-skip]").addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); byId("results").scrollIntoView(); });
dialog.addEventListener("close", () => {
  const key = state.row;
  state.row = "";
  writeAddress();
  const node = [...byId("table").tBodies[0].rows].find((one) => one.row && one.row.key === key);
  if (node) { node.focus(); hideHint(); }
});
addEventListener("hashchange", restore);
listenToTable();
restore();
