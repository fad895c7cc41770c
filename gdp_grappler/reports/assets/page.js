'use strict';

// Draws the page from the data in it. Names are only ever set as text; plotly,
// which knows some markup, gets them escaped.
(async function () {
  const PIXELS = 1100, SMALL = 1.5, MOST_ARROWS = 60, ROWS = 100;
  const byId = id => document.getElementById(id);

  function complain(text) {
    byId('problem').hidden = false;
    byId('problem').textContent = text;
  }

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(
        new DecompressionStream('gzip'));
    return JSON.parse(await new Response(stream).text());
  }

  if (typeof DecompressionStream === 'undefined') {
    complain('This browser is too old to unpack the data: it needs ' +
             'DecompressionStream (Chromium 80, Firefox 113, Safari 16.4).');
    return;
  }
  const data = await unpack(byId('data').textContent);
  const ops = data.ops, count = ops.names.length, runs = data.runs;
  const critical = runs.map(run => new Set(run.critical));
  const stepUs = Math.max(...runs.map(run => run.stepUs), 1e-6);
  let current = runs.length - 1;
  // Devices that neither work nor exchange tensors in any run have no lane,
  // because empty lanes would take room.
  const busy = data.devices.map((label, device) => runs.some(run =>
      run.work.computing[device] + run.work.copying[device] > 0));
  for (const run of runs) {
    run.transfers.source.forEach(device => { busy[device] = true; });
    run.transfers.target.forEach(device => { busy[device] = true; });
  }
  const shown = data.devices.map((label, device) => device)
      .filter(device => busy[device] || !busy.includes(true));
  const idle = data.devices.filter((label, device) => !shown.includes(device));
  const lane = new Map(shown.map((device, i) => [device, i]));

  // Numbers for people.
  const escaped = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
      .replace(/>/g, '&gt;');
  const time = us => us >= 1e6 ? `${(us / 1e6).toPrecision(4)} s` :
      us >= 1e3 ? `${(us / 1e3).toPrecision(4)} ms` : `${+us.toPrecision(3)} us`;
  function size(bytes) {
    let unit = 0;
    while (bytes >= 999.5 && unit < 4) { bytes /= 1000; unit++; }
    return `${+bytes.toPrecision(3)} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`;
  }

  // Converts microseconds to the unit of the axes.
  const onAxis = us => us / data.axis.us;

  // Makes an element whose content is text.
  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }
  function fill(table, head, rows) {
    const top = element('tr');
    for (const cell of head) {
      const th = element('th', cell.text, cell.number ? 'number' : '');
      if (cell.click) {
        th.classList.add('sorts');
        th.addEventListener('click', cell.click);
      }
      top.append(th);
    }
    const body = element('tbody');
    for (const row of rows) {
      const tr = element('tr');
      row.cells.forEach((cell, i) =>
          tr.append(element('td', cell, head[i].number ? 'number' : '')));
      if (row.op !== undefined) {
        tr.className = 'choose';
        tr.dataset.op = row.op;
        tr.addEventListener('click', () => choose(row.op));
      }
      body.append(tr);
    }
    const thead = element('thead');
    thead.append(top);
    table.replaceChildren(thead, body);
  }

  // The timeline. Neighbouring ops that are too short to be seen share a bar.
  const sorted = runs.map(run => {
    const lanes = data.devices.map(() => []);
    run.device.forEach((device, op) => lanes[device].push(op));
    for (const lane of lanes) lane.sort((a, b) => run.start[a] - run.start[b]);
    return lanes;
  });
  const slotsUsed = runs.map((run, r) => sorted[r].map(lane => {
    let most = 0;
    for (const op of lane) if (run.slot[op] > most) most = run.slot[op];
    return Math.min(most + 1, 8);
  }));
  const laneAt = (r, i) => -(r * (shown.length + .6) + i);
  const laneY = (r, device) => laneAt(r, lane.get(device));

  function bars(r, device, from, to, keyOf) {
    const run = runs[r], slots = slotsUsed[r][device];
    const small = (to - from) / PIXELS * SMALL, found = [], open = [];
    const close = slot => {
      if (open[slot]) found.push(open[slot]);
      open[slot] = null;
    };
    for (const op of sorted[r][device]) {
      const start = run.start[op], duration = run.duration[op];
      if (start > to) break;
      if (start + duration < from) continue;
      const slot = Math.min(run.slot[op], slots - 1), key = keyOf(op);
      let bar = open[slot];
      if (bar && (duration >= small || start - bar.end > small ||
                  bar.end - bar.start > 4 * small)) {
        close(slot);
        bar = null;
      }
      if (!bar) {
        bar = { start, end: start + duration, slot, op, longest: duration,
                ops: 0, keys: new Map() };
        open[slot] = bar;
      }
      bar.ops++;
      bar.end = Math.max(bar.end, start + duration);
      bar.keys.set(key, (bar.keys.get(key) || 0) + duration);
      if (duration > bar.longest) { bar.op = op; bar.longest = duration; }
      if (duration >= small) close(slot);
    }
    open.forEach((bar, slot) => close(slot));
    return found;
  }

  function opTraces(from, to) {
    const byDevice = byId('colouring').value === 'device';
    const names = byDevice ? data.devices : data.families;
    const colors = byDevice ? data.deviceColors : data.familyColors;
    const traces = names.map((name, i) => ({
      type: 'bar', orientation: 'h', name: escaped(name), base: [], x: [],
      y: [], width: [], customdata: [], hovertext: [], hoverinfo: 'text',
      textposition: 'none', marker: { color: colors[i], line: { width: 0 } }
    }));
    runs.forEach((run, r) => shown.forEach(device => {
      const slots = slotsUsed[r][device];
      const keyOf = op => byDevice ? device : ops.family[op];
      for (const bar of bars(r, device, from, to, keyOf)) {
        let key = 0, most = -1;
        for (const [k, us] of bar.keys) if (us > most) { key = k; most = us; }
        const trace = traces[key];
        trace.base.push(onAxis(bar.start));
        trace.x.push(onAxis(bar.end - bar.start));
        trace.y.push(laneY(r, device) + .4 - .8 * (bar.slot + .5) / slots);
        trace.width.push(.8 / slots);
        trace.customdata.push([bar.op, bar.ops, r]);
        const others = bar.ops > 1 ? `<br>and ${bar.ops - 1} more` : '';
        trace.hovertext.push(
            `<b>${escaped(ops.names[bar.op])}</b><br>` +
            `${escaped(ops.types[ops.type[bar.op]])}, ` +
            `${time(run.duration[bar.op])}${others}`);
      }
    }));
    return traces.filter(trace => trace.x.length);
  }

  function arrowTrace(from, to) {
    const trace = {
      type: 'scatter', mode: 'lines+markers', name: 'sent', x: [], y: [],
      hovertext: [], hoverinfo: 'text', customdata: [],
      line: { color: data.transferColor, width: 1 },
      marker: { symbol: 'arrow', angleref: 'previous', size: [],
                color: data.transferColor }
    };
    runs.forEach((run, r) => {
      const sent = run.transfers;
      const inView = sent.op.map((_, i) => i).filter(i =>
          sent.start[i] <= to && sent.start[i] + sent.duration[i] >= from);
      inView.sort((a, b) => sent.bytes[b] - sent.bytes[a]);
      for (const i of inView.slice(0, MOST_ARROWS)) {
        const text = `${escaped(ops.names[sent.op[i]])}<br>` +
            `${size(sent.bytes[i])}, ${time(sent.duration[i])}`;
        trace.x.push(onAxis(sent.start[i]),
                     onAxis(sent.start[i] + sent.duration[i]), null);
        trace.y.push(laneY(r, sent.source[i]), laneY(r, sent.target[i]), null);
        trace.hovertext.push(text, text, '');
        trace.customdata.push([sent.op[i], 1, r], [sent.op[i], 1, r], null);
        trace.marker.size.push(0, 9, 0);
      }
    });
    return trace;
  }

  const ticks = { y: [], text: [] };
  const headings = [];
  runs.forEach((run, r) => {
    headings.push({
      x: 0, xref: 'paper', xanchor: 'left', y: laneAt(r, 0) + .55,
      yanchor: 'middle', showarrow: false,
      text: `<b>${escaped(run.name)}</b>: ${time(run.stepUs)}`
    });
    shown.forEach(device => {
      ticks.y.push(laneY(r, device));
      ticks.text.push(escaped(data.devices[device]));
    });
  });
  const ends = runs.map((run, r) => ({
    type: 'line', x0: onAxis(run.stepUs), x1: onAxis(run.stepUs), y0: laneAt(r, 0) + .45,
    y1: laneAt(r, shown.length - 1) - .45,
    line: { color: '#333', width: 1, dash: 'dot' }
  }));
  const full = [0, stepUs * 1.01];
  let view = full.slice();

  function drawTimeline() {
    const traces = opTraces(view[0], view[1]);
    if (byId('arrows').checked) traces.push(arrowTrace(view[0], view[1]));
    const lanes = runs.length * (shown.length + .6);
    return Plotly.react('timeline', traces, {
      barmode: 'overlay', height: Math.max(280, 46 * lanes + 150),
      margin: { l: 90, r: 20, t: 30, b: 84 }, hovermode: 'closest',
      legend: { orientation: 'h', yref: 'container', y: 0, yanchor: 'bottom' },
      annotations: headings,
      shapes: ends,
      xaxis: { range: view.map(onAxis), title: { text: data.axis.unit } },
      yaxis: { tickvals: ticks.y, ticktext: ticks.text, fixedrange: true,
               range: [laneAt(runs.length - 1, shown.length - 1) - .6, .8] }
    }, { responsive: true, displaylogo: false });
  }

  function listenToTimeline() {
    const plot = byId('timeline');
    plot.on('plotly_relayout', change => {
      const from = change['xaxis.range[0]'], to = change['xaxis.range[1]'];
      if (change['xaxis.autorange']) view = full.slice();
      else if (from !== undefined) {
        view = [+from * data.axis.us, +to * data.axis.us];
      }
      else return;
      drawTimeline();
    });
    plot.on('plotly_click', event => {
      const chosen = event.points[0].customdata;
      if (chosen) choose(chosen[0], chosen[1]);
    });
  }

  // One op.
  function choose(op, together) {
    byId('details').hidden = false;
    const box = byId('op');
    const facts = [
      ['name', ops.names[op]],
      ['type', `${ops.types[ops.type[op]]} ` +
               `(${data.families[ops.family[op]]})`],
      ['why', `It ${ops.whys[ops.why[op]]}.`],
      ['makes', size(ops.bytes[op])]
    ];
    if (ops.variables[op]) facts.push(['holds', size(ops.variables[op])]);
    runs.forEach((run, r) => facts.push([
      run.name, `on ${data.devices[run.device[op]]}, ${time(run.duration[op])}` +
      ` from ${time(run.start[op])}; ` +
      (critical[r].has(op) ? 'on the critical chain' :
       'not on the critical chain')
    ]));
    if (together > 1) {
      facts.push(['beside', `${together - 1} more ops in this bar; zoom in to ` +
                            'see them']);
    }
    const list = element('dl');
    for (const [name, text] of facts) {
      list.append(element('dt', name), element('dd', text));
    }
    box.replaceChildren(list);
    byId('details').scrollIntoView({ block: 'nearest' });
  }

  // Curves and bars. Each run has a dash of its own.
  const DASHES = ['dot', 'solid', 'dash', 'dashdot', 'longdash',
                  'longdashdot'];
  function drawMemory() {
    const traces = [];
    const filled = data.pools.map((pool, p) => Math.max(...runs.map(
        run => run.peaks[p])) / pool.bytes);
    // Memories that are almost empty have no curve.
    const least = Math.max(...filled) / 1000;
    runs.forEach((run, r) => data.pools.forEach((pool, p) => {
      if (filled[p] < least || !filled[p]) return;
      const curve = run.memory[p];
      traces.push({
        type: 'scatter', mode: 'lines', x: curve.at.map(onAxis),
        y: curve.bytes.map(bytes => 100 * bytes / pool.bytes),
        line: { shape: 'hv', width: 1.5, dash: DASHES[r % DASHES.length],
                color: data.deviceColors[p % data.deviceColors.length] },
        name: `${escaped(run.name)}, ${escaped(pool.name)}: ` +
              `${size(run.peaks[p])} of ${size(pool.bytes)}`,
        hovertemplate: '%{y:.1f} %<extra></extra>'
      });
    }));
    const most = Math.max(0, ...traces.map(t => Math.max(...t.y)));
    return Plotly.newPlot('memory', traces, {
      height: 320, margin: { l: 90, r: 20, t: 36, b: 40 },
      xaxis: { title: { text: data.axis.unit }, range: full.map(onAxis) },
      yaxis: { title: { text: '% of its memory' }, rangemode: 'tozero',
               exponentformat: 'none' },
      shapes: most < 40 ? [] : [{
        type: 'line', xref: 'paper', x0: 0, x1: 1, y0: 100, y1: 100,
        line: { color: '#c00', width: 1 }
      }],
      legend: { orientation: 'v' }
    }, { responsive: true, displaylogo: false });
  }

  function drawWork() {
    const labels = [];
    runs.forEach(run => shown.forEach(device =>
        labels.push(`${escaped(run.name)} ${escaped(data.devices[device])}`)));
    const kinds = [['computing', '#4477aa'], ['copying', data.transferColor],
                   ['waiting', '#e6e6e6']];
    const traces = kinds.map(([kind, color]) => ({
      type: 'bar', orientation: 'h', name: kind, y: labels,
      x: runs.flatMap(run => shown.map(
          device => onAxis(run.work[kind][device]))),
      marker: { color },
      hovertext: runs.flatMap(run => shown.map(
          device => `${kind} ${time(run.work[kind][device])}`)),
      hoverinfo: 'text',
      textposition: 'none'
    }));
    return Plotly.newPlot('work', traces, {
      barmode: 'stack', height: 100 + 26 * labels.length,
      margin: { l: 200, r: 20, t: 36, b: 40 },
      xaxis: { title: { text: data.axis.unit } },
      yaxis: { autorange: 'reversed', automargin: true },
      legend: { orientation: 'v' }
    }, { responsive: true, displaylogo: false });
  }

  // Tables.
  function drawLayers() {
    fill(byId('layers'), [
      { text: 'layer' }, { text: 'device' },
      { text: 'parameters', number: true }, { text: 'memory', number: true },
      { text: 'takes', number: true }, { text: 'cut', number: true }
    ], runs[current].layers.map(cells => ({ cells })));
  }
  function drawChain() {
    const run = runs[current];
    byId('chain_part').textContent = run.chainPart;
    fill(byId('chain'), [
      { text: 'from', number: true }, { text: 'where' },
      { text: 'waits for' }, { text: 'takes', number: true },
      { text: 'gaps', number: true }, { text: 'what' }
    ], run.chain.map(row => ({
      op: row.first,
      cells: [
        time(row.startUs), row.where.map(d => data.devices[d]).join(' to '),
        row.waitedFor, time(row.us), time(row.gapUs),
        row.ops === 1 ? ops.names[row.first] :
            `${row.ops} ops, ${ops.names[row.first]} to ${ops.names[row.last]}`
      ]
    })));
  }
  function drawCuts() {
    const run = runs[current];
    byId('cuts_part').textContent = run.cutsPart;
    fill(byId('cuts'), [
      { text: 'bytes', number: true }, { text: 'takes', number: true },
      { text: 'from' }, { text: 'to' }, { text: 'made by' }
    ], run.cuts.map(cut => ({
      op: cut.op,
      cells: [size(cut.bytes), time(cut.us), data.devices[cut.source],
              data.devices[cut.target], ops.names[cut.op]]
    })));
  }

  const lowered = ops.names.map(name => name.toLowerCase());
  const columns = [
    { text: 'op', of: op => ops.names[op] },
    { text: 'type', of: op => ops.types[ops.type[op]] },
    { text: 'device', of: op => data.devices[runs[current].device[op]] },
    { text: 'takes', number: true, of: op => runs[current].duration[op],
      show: time },
    { text: 'from', number: true, of: op => runs[current].start[op],
      show: time },
    { text: 'makes', number: true, of: op => ops.bytes[op], show: size },
    { text: 'holds', number: true, of: op => ops.variables[op], show: size },
    { text: 'critical', of: op => critical[current].has(op) ? 'yes' : '' },
    { text: 'why', of: op => ops.whys[ops.why[op]] }
  ];
  let order = { column: 3, down: true }, first = 0, matching = [];

  function search() {
    const words = byId('search').value.toLowerCase().split(/\s+/)
        .filter(word => word);
    const texts = words.map(word => ({
      word,
      types: ops.types.map(text => text.toLowerCase().includes(word)),
      whys: ops.whys.map(text => text.toLowerCase().includes(word)),
      devices: data.devices.map(text => text.toLowerCase().includes(word))
    }));
    const device = runs[current].device;
    matching = [];
    for (let op = 0; op < count; op++) {
      if (texts.every(t => lowered[op].includes(t.word) ||
          t.types[ops.type[op]] || t.whys[ops.why[op]] ||
          t.devices[device[op]])) {
        matching.push(op);
      }
    }
    const of = columns[order.column].of, sign = order.down ? -1 : 1;
    const keys = new Map(matching.map(op => [op, of(op)]));
    matching.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      return x < y ? -sign : x > y ? sign : a - b;
    });
    first = 0;
    drawOps();
  }
  function drawOps() {
    const shown = matching.slice(first, first + ROWS);
    byId('found').textContent = matching.length ?
        `${first + 1} to ${first + shown.length} of ${matching.length}` :
        'nothing';
    byId('back').disabled = !first;
    byId('forth').disabled = first + ROWS >= matching.length;
    fill(byId('ops'), columns.map((column, i) => ({
      text: column.text + (i === order.column ? (order.down ? ' ▼' : ' ▲') :
                           ''),
      number: column.number,
      click: () => {
        order = { column: i, down: order.column === i ? !order.down :
                                   !!column.number };
        search();
      }
    })), shown.map(op => ({
      op,
      cells: columns.map(column => column.show ? column.show(column.of(op)) :
                                   column.of(op))
    })));
  }

  function drawTables() {
    drawLayers();
    drawChain();
    drawCuts();
    search();
  }

  byId('facts').textContent = `${data.graph}: ${count} ops on ` +
      `${data.cluster}. ` + runs.map(run =>
          `${run.name}: ${time(run.stepUs)} (simulated), ${run.cut.tensors} ` +
          `tensor${run.cut.tensors === 1 ? '' : 's'} of ${size(run.cut.bytes)} sent`).join('; ') + '.' +
      (idle.length ? ` Nothing takes time on ${idle.join(', ')}.` : '');
  const warnings = runs.flatMap(run =>
      run.warnings.map(text => `${run.name}: ${text}`));
  if (warnings.length) complain(warnings.join('; '));
  runs.forEach((run, r) => {
    const option = element('option', run.name);
    option.value = r;
    option.selected = r === current;
    byId('run').append(option);
  });
  byId('run').addEventListener('change', event => {
    current = +event.target.value;
    drawTables();
  });
  for (const id of ['colouring', 'arrows']) {
    byId(id).addEventListener('change', drawTimeline);
  }
  let waiting = 0;
  byId('search').addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  byId('back').addEventListener('click', () => {
    first = Math.max(0, first - ROWS);
    drawOps();
  });
  byId('forth').addEventListener('click', () => {
    first += ROWS;
    drawOps();
  });
  drawTables();
  await drawTimeline();
  listenToTimeline();
  await drawMemory();
  await drawWork();
  document.body.dataset.drawn = 'yes';
})().catch(error => {
  const problem = document.getElementById('problem');
  problem.hidden = false;
  problem.textContent = `This page cannot be drawn: ${error}`;
  console.error(error);
});
