// One row in full: its figures, every sample, the verification, the log of a failure, and the command for it.

const dialog = byId("details");

function openDetails(row) {
  hideHint();
  dialog.className = row.tone;
  dialog.replaceChildren(
    element("button", { type: "button", class: "close", onclick: () => dialog.close(), autofocus: true }, "Close"),
    element("h2", { id: "details-title" }, row.system),
    element("p", { class: "quiet" }, `${row.place.workload} · ${row.place.phase} · ${row.place.device} · ${row.place.precision} · ${row.place.machine}`),
    element("p", {}, row.description),
    facts(row),
    ...failure(row),
    ...allSamples(row),
    ...verification(row),
    ...command(row),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function facts(row) {
  const list = element("dl");
  const add = (name, text) => { if (text && text !== NONE) list.append(element("dt", {}, name), element("dd", {}, text)); };
  add("status", row.shown.replace("~", "") + (row.noisy ? " (the machine was busy)" : "") + (row.reason ? `: ${row.reason}` : ""));
  add("time of one batch", known(row.wall_s) ? `${marked(seconds(row.wall_s), row.uncertain)} ${span(row.wall_low_s, row.wall_high_s, row.wall_s)}` : "");
  add("elapsed", known(row.elapsed_s) ? `${seconds(row.elapsed_s)} for ${row.batches} batches` : "");
  add("sequences per second", amount(row.sequences_per_s));
  add("ratio to the best", known(row.ratio) ? `${marked(times(row.ratio), row.ratio_uncertain)} [${times(row.ratio_low)}, ${times(row.ratio_high)}]` : "");
  add("import, build", known(row.import_s) ? `${seconds(row.import_s)}, ${seconds(row.build_s)}` : "");
  add("first call", seconds(row.first_call_s));
  add("warm-up, of which compiling", known(row.warm_up_s) ? `${seconds(row.warm_up_s)}, ${seconds(row.compile_s)}` : "");
  add("peak memory", bytes(row.memory_bytes));
  add("limit", known(row.limit_s) ? `${seconds(row.limit_s)} a batch: this row reaches ${marked(share(row.limit_share), row.uncertain)} of it` : "");
  add("checked at full size", row.checked || (known(row.wall_s) ? "nothing" : ""));
  add("bottleneck", row.bottleneck);
  add("operators of a batch", known(row.operators) ? `${whole(row.operators)}; no operator runs in ${share(row.host_share)} of it` : "");
  add("new batch size, new length", known(row.new_batch_s) ? `${reshaped(row.new_batch_s, row.new_batch)}; ${reshaped(row.new_length_s, row.new_length)}` : "");
  add("parameters", known(row.parameter_count) ? row.parameter_count.toLocaleString("en") : "");
  add("environment", `${row.environment}: ${environmentOf(row)}`);
  add("published as", row.seed_label);
  return list;
}

function failure(row) {
  if (!row.log_tail && !row.stage) return [];
  return [
    element("h3", {}, row.stage ? `Failed during: ${row.stage}` : "End of its log"),
    row.log_tail ? element("pre", { class: "log", tabindex: "0" }, row.log_tail) : null,
  ].filter(Boolean);
}

function allSamples(row) {
  const launches = row.launches.map(samplesOf);
  if (!launches.length) return [];
  const lines = launches.map((launch, number) => {
    const blocks = Array.isArray(launch.sizes) ? "" : `, blocks of ${launch.sizes} batch${launch.sizes === 1 ? "" : "es"}`;
    const head = `launch ${number + 1}, round ${launch.round}, ${launch.started}, ${launch.outcome}${launch.noisy ? ", noisy" : ""}${blocks}`;
    const versions = Object.entries(launch.versions).map(([name, version]) => `${name} ${version}`).join(", ");
    const blocked = launch.nanoseconds.map((time, index) => (Array.isArray(launch.sizes) ? `${launch.sizes[index]}: ` : "") + (time / 1e9).toString());
    return [head, versions, blocked.join("  ")].filter(Boolean).join("\n");
  });
  return [
    element("h3", {}, "Samples, in the order they were taken"),
    drawSamples(row, 800, 190),
    element("details", {}, element("summary", {}, "Seconds of each block"), element("pre", { class: "raw", tabindex: "0" }, lines.join("\n\n"))),
  ];
}

function verification(row) {
  const proof = proofOf(row);
  if (!proof) return [];
  const body = proof.figures.map((figure) => {
    const passes = known(figure.error) && figure.error <= figure.tolerance;
    return element("tr", {},
      element("td", {}, figure.quantity),
      element("td", { class: "number" }, scientific(figure.error)),
      element("td", { class: "number" }, scientific(figure.tolerance)),
      element("td", { class: passes ? null : "fails" }, passes ? "passes" : "fails"));
  });
  const head = ["quantity", "relative error", "tolerance", ""].map((name, index) => element("th", { scope: "col", class: index === 1 || index === 2 ? "number" : null }, name));
  return [
    element("h3", {}, `Verification: ${proof.verdict}${proof.reason ? `, ${proof.reason}` : ""}`),
    element("p", { class: "quiet" }, `on ${proof.workload}`),
    proof.figures.length ? element("table", { class: "figures" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)) : null,
    proof.log ? element("pre", { tabindex: "0" }, proof.log) : null,
  ].filter(Boolean);
}

const command = (row) => (row.command ? [element("h3", {}, "Run just this row"), element("pre", { class: "command", tabindex: "0" }, row.command)] : []);

dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
