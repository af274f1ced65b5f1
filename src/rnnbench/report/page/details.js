// One row in full: what was found, every sample, the proof, the log of a failure, and how to run it again.

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
    ...proof(row),
    ...again(row),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function facts(row) {
  const list = element("dl");
  const say = (name, text) => { if (text && text !== NONE) list.append(element("dt", {}, name), element("dd", {}, text)); };
  say("status", row.status + (row.noisy ? " (the machine was busy)" : "") + (row.reason ? `: ${row.reason}` : ""));
  say("time of one batch", known(row.wall_s) ? `${seconds(row.wall_s)} ${span(row.wall_low_s, row.wall_high_s, row.wall_s)}` : "");
  say("elapsed", known(row.elapsed_s) ? `${seconds(row.elapsed_s)} for ${row.batches} batches` : "");
  say("sequences per second", amount(row.sequences_per_s));
  say("ratio to the best", known(row.ratio) ? `${times(row.ratio)} [${times(row.ratio_low)}, ${times(row.ratio_high)}]` : "");
  say("import, build", known(row.import_s) ? `${seconds(row.import_s)}, ${seconds(row.build_s)}` : "");
  say("first call", seconds(row.first_call_s));
  say("warm-up, of it compiling", known(row.warm_up_s) ? `${seconds(row.warm_up_s)}, ${seconds(row.compile_s)}` : "");
  say("peak memory", bytes(row.memory_bytes));
  say("limit", known(row.limit_s) ? `${seconds(row.limit_s)} a batch: this row reaches ${share(row.limit_share)} of it` : "");
  say("bottleneck", row.bottleneck);
  say("operators of a batch", known(row.operators) ? `${whole(row.operators)}; none runs in ${share(row.host_share)} of it` : "");
  say("another batch size, length", known(row.new_batch_s) ? `${reshaped(row.new_batch_s, row.new_batch)}; ${reshaped(row.new_length_s, row.new_length)}` : "");
  say("parameters", known(row.parameter_count) ? row.parameter_count.toLocaleString("en") : "");
  say("environment", `${row.environment}: ${environmentOf(row)}`);
  say("in the seeds", row.seed_label);
  return list;
}

function failure(row) {
  if (!row.log_tail && !row.stage) return [];
  return [
    element("h3", {}, row.stage ? `Ended while: ${row.stage}` : "End of its log"),
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
    element("details", {}, element("summary", {}, "Raw: seconds of each block"), element("pre", { class: "raw", tabindex: "0" }, lines.join("\n\n"))),
  ];
}

function proof(row) {
  const found = proofOf(row);
  if (!found) return [];
  const body = found.figures.map((figure) => {
    const passes = known(figure.error) && figure.error <= figure.tolerance;
    return element("tr", {},
      element("td", {}, figure.quantity),
      element("td", { class: "number" }, scientific(figure.error)),
      element("td", { class: "number" }, scientific(figure.tolerance)),
      element("td", { class: passes ? null : "fails" }, passes ? "passes" : "fails"));
  });
  const head = ["quantity", "relative error", "tolerance", ""].map((name, index) => element("th", { scope: "col", class: index === 1 || index === 2 ? "number" : null }, name));
  return [
    element("h3", {}, `Verification: ${found.verdict}${found.reason ? `, ${found.reason}` : ""}`),
    element("p", { class: "quiet" }, `on ${found.workload}`),
    found.figures.length ? element("table", { class: "figures" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)) : null,
    found.log ? element("pre", { tabindex: "0" }, found.log) : null,
  ].filter(Boolean);
}

const again = (row) => (row.command ? [element("h3", {}, "Run just this row"), element("pre", { class: "command", tabindex: "0" }, row.command)] : []);

dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
