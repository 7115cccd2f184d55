// src/model.js
function readModel(data) {
  const nodes = data.nodes.map(readNode);
  for (const node of nodes) {
    node.children.forEach((child, branch) => {
      nodes[child].branch = branch;
    });
  }
  const pending = [0];
  while (pending.length) {
    const node = nodes[pending.pop()];
    node.depth = node.parent === null ? 0 : nodes[node.parent].depth + 1;
    pending.push(...node.children);
  }
  const used = [...new Set(nodes.flatMap((node) => node.features))].sort((a, b) => a - b);
  return { ...data, nodes, used };
}
function readNode(raw, number) {
  const node = { children: [], features: [], branch: null, ...raw, number };
  node.isLeaf = node.children.length === 0;
  node.segments = raw.segments?.map(withLimits);
  node.regions = raw.regions?.map(withBounds);
  node.joined = raw.joined?.map(withBounds);
  return node;
}
function withBounds(region) {
  return { ...region, bounds: region.bounds.map(withLimits) };
}
function withLimits(part) {
  return { ...part, low: part.low ?? -Infinity, high: part.high ?? Infinity };
}
var isCategorical = (feature) => feature.categories !== void 0;

// src/predict.js
function readRow(model, named) {
  return model.features.map((feature) => {
    const value = named[feature.name] ?? null;
    if (isCategorical(feature)) return codeOf(feature, value);
    const isMoment = feature.date && value instanceof Date;
    return readNumber(isMoment ? value.getTime() / 1e3 : value);
  });
}
function pathOf(model, row) {
  const path = [model.nodes[0]];
  while (!path.at(-1).isLeaf) {
    const node = path.at(-1);
    path.push(model.nodes[node.children[branchOf(node, row)]]);
  }
  return path;
}
function branchOf(node, row) {
  return isMissing(node, row) ? node.missingBranch : partOf(node, row).branch;
}
function isMissing(node, row) {
  return node.features.some((feature, side) => {
    const value = row[feature];
    return value === null || (node.missingCodes?.[side].includes(value) ?? false);
  });
}
function partOf(node, row) {
  if (node.segments)
    return node.segments.find((segment) => inSegment(segment, row[node.features[0]]));
  return node.regions.find((region) => inRegion(node, region, row));
}
function inRegion(node, region, row) {
  const values = node.features.map((feature) => row[feature]);
  return region.bounds.every((bound) => inBound(bound, values));
}
function inSegment(segment, value) {
  return segment.codes ? segment.codes.includes(value) : value <= segment.high;
}
function inBound(bound, values) {
  if (bound.codes) return bound.codes.includes(values[bound.weights[0] ? 0 : 1]);
  return encloses(bound, weigh(bound.weights, values));
}
function encloses({ low, high }, number) {
  return (low < number || low === -Infinity) && number <= high;
}
function weigh([a, b], [first, second]) {
  return a * clamped(first) + b * clamped(second);
}
function clamped(value) {
  return Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
}
function readNumber(value) {
  if (value === null || value === "") return null;
  const number = Number(value);
  return Number.isNaN(number) ? null : number;
}
function codeOf(feature, value) {
  const code = feature.values.findIndex(
    (known) => typeof known === "string" || typeof value === "string" ? known === value : known !== null && value !== null && Number(known) === Number(value)
  );
  return code < 0 ? null : code;
}

// src/module.js
function readTree({ classes, features, nodes }) {
  const model = readModel({ features: features.map(withCategories), nodes });
  const pathTo = (row) => pathOf(model, readRow(model, row));
  const valuesOf = (row) => pathTo(row).at(-1).value;
  const leaf = (row) => pathTo(row).at(-1).number;
  const reasons = (row) => [
    ...new Set(pathTo(row).flatMap((node) => node.features.map((j) => model.features[j].name)))
  ];
  return { leaf, reasons, ...predictors(classes, valuesOf) };
}
function readForest({ classes, features, trees }) {
  const known = features.map(withCategories);
  const models = trees.map((nodes) => readModel({ features: known, nodes }));
  const leavesOf = (row) => {
    const read = readRow(models[0], row);
    return models.map((model) => pathOf(model, read).at(-1));
  };
  const meansOf = (row) => {
    const values = leavesOf(row).map((leaf) => leaf.value);
    const meanOf = (output, i) => values.reduce((sum, value) => sum + value[output][i], 0) / values.length;
    return values[0].map((its, output) => its.map((_, i) => meanOf(output, i)));
  };
  const leaves = (row) => leavesOf(row).map((leaf) => leaf.number);
  return { leaves, ...predictors(classes, meansOf) };
}
function predictors(classes, valuesOf) {
  if (classes === null) {
    return { predict: (row) => alone(valuesOf(row).map(([number]) => number)) };
  }
  return {
    predict: (row) => alone(valuesOf(row).map((shares, i) => classes[i][likeliest(shares)])),
    predictProba: (row) => alone(valuesOf(row).map((shares) => [...shares]))
  };
}
function withCategories(feature) {
  return feature.values ? { ...feature, categories: feature.values } : feature;
}
function likeliest(shares) {
  return shares.reduce((best, share, i) => share > shares[best] ? i : best, 0);
}
function alone(outcomes) {
  return outcomes.length === 1 ? outcomes[0] : outcomes;
}
