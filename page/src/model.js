/**
 * The tree as the page uses it: the JSON that Python wrote, with infinite bounds and with each
 * node's place in the tree.
 */

export function readModel(data) {
  const nodes = data.nodes.map(readNode);
  for (const node of nodes) {
    node.children.forEach((child, branch) => {
      nodes[child].branch = branch;
    });
  }
  // A child's number may be smaller than its parent's, so go down from the root.
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

/** Nodes from the root to a node, both included. */
export function pathTo(model, number) {
  const path = [];
  for (let at = number; at !== null; at = model.nodes[at].parent) path.push(model.nodes[at]);
  return path.reverse();
}

/** The node and all below it. */
export function subtreeOf(model, node) {
  return [node, ...node.children.flatMap((child) => subtreeOf(model, model.nodes[child]))];
}

export function featureNames(model, node) {
  return node.features.map((feature) => model.features[feature].name);
}

/** The features in a node's title: of a pair, what goes to the right comes first. */
export function titleNames(model, node) {
  const names = featureNames(model, node);
  return node.plane ? node.plane.sides.map((side) => names[side]) : names;
}

/** What a title says about an axis that is not linear. */
export function scaleWords(node) {
  return { log: " (log scale)", quantile: " (by rows)" }[node.density?.scale] ?? "";
}

export const isCategorical = (feature) => feature.categories !== undefined;
