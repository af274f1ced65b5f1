// The samples of one row over time, launch by launch, with the row's wall time and interval.

function drawSamples(row, width, height) {
  const launches = row.launches.map(samplesOf).filter((launch) => launch.walls.length);
  const walls = launches.flatMap((launch) => launch.walls);
  if (!walls.length) return null;
  const low = Math.min(...walls, row.wall_low_s ?? Infinity);
  const high = Math.max(...walls, row.wall_high_s ?? -Infinity);
  const margin = (high - low || high) * 0.08;
  const left = 64, right = width - 8, top = 10, foot = height - 20;
  const y = (wall) => foot - ((wall - low + margin) / (high - low + 2 * margin)) * (foot - top);
  const gap = 2;
  const step = (right - left) / (walls.length + gap * launches.length);
  const label = `${walls.length} samples from ${seconds(low)} to ${seconds(high)} a batch`;
  const picture = drawn("svg", { class: `samples ${row.tone}`, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const wall of [low, high]) {
    picture.append(
      drawn("line", { class: "axis", x1: left, x2: right, y1: y(wall), y2: y(wall) }),
      drawn("text", { x: left - 6, y: y(wall) + 4, "text-anchor": "end" }, seconds(wall)),
    );
  }
  if (known(row.wall_s)) {
    picture.append(
      drawn("rect", { class: "band", x: left, width: right - left, y: y(row.wall_high_s), height: Math.max(1, y(row.wall_low_s) - y(row.wall_high_s)) }),
      drawn("line", { class: "mean", x1: left, x2: right, y1: y(row.wall_s), y2: y(row.wall_s) }),
    );
  }
  let x = left + step;
  launches.forEach((launch, number) => {
    picture.append(drawn("text", { x, y: height - 5 }, `${launches.length > 8 ? "" : "launch "}${number + 1}${launch.noisy ? " ~" : ""}`));
    for (const wall of launch.walls) {
      picture.append(drawn("circle", { class: launch.noisy ? "noisy" : null, cx: x, cy: y(wall), r: Math.max(1.2, Math.min(3, step / 2.4)) }));
      x += step;
    }
    x += gap * step;
  });
  return picture;
}
