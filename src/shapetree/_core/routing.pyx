"""Routing: the rows in a tree's nodes while it is refined, and what each branch would cost them.

Nodes with shape functions of one feature know the branch of every bin; those of pairs have cuts.
The rows of a node are one range of places, see `shapetree._core.rows`.

Losses are multiples of a unit, so that sums do not depend on order: see
`shapetree._core.losses` for this and for what an anchor is.
"""

cimport cython
import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from shapetree._core.columns cimport UINT8, UINT16, UINT32, Column, Columns, code_at
from shapetree._core.losses cimport (
    CellScratch, LeafLosses, RowTargets, add_losses, add_targets, add_to_two, gather_cells,
    loss_in_leaf,
)
from shapetree._core.pieces cimport PairCuts, branch_by_cuts
from shapetree._core.rows cimport NodeRows
from shapetree._core.sorting cimport sort_rows
from shapetree._core.steps cimport Step, branch_at, follow, leaves_below, n_regions, piece_at
from shapetree._core.threads cimport APART

cdef enum:
    BLOCK = 16384        # rows that one thread takes at a time
    CHUNK = 256          # rows whose losses stay in the cache
    SORT_AFTER = 2       # times that all rows may move before leaves are sorted
    MIN_SORTED = 2048    # rows of a leaf that are worth sorting
    MIN_AT_ONCE = 128    # rows of a node that are worth summing by two features at once

ctypedef struct LossBlock:
    # Rows of a node that one thread compares; those that care stand at the start of the block.
    int number                    # of the node in its level
    int64_t first
    int64_t last
    int64_t n_care


ctypedef struct SentBlock:
    # Rows that one thread sends.
    int node                      # that sends them
    bint keeps_rest               # whether only this node's split is new, nothing below
    int64_t first
    int64_t last
    int64_t* place                # rows of each leaf below; then where they go


cdef void share_places(SentBlock* blocks, Py_ssize_t n_blocks, Py_ssize_t n_leaves) noexcept:
    """From the numbers of rows for each leaf to where each block of a node sends its first one."""
    cdef:
        Py_ssize_t block, leaf
        int64_t n, at = blocks[0].first
    for leaf in range(n_leaves):
        for block in range(n_blocks):
            n = blocks[block].place[leaf]
            blocks[block].place[leaf] = at
            at += n


@cython.final
cdef class RoutedRows:
    """A tree over bins, and the rows in its nodes.

    Nodes are numbered from 0, the root; children come after their parents. A node is a leaf until
    it is given a split. Rows follow when they are sent.

    Parameters
    ----------
    bins : Columns
        Columns of bins.
    rows : NodeRows
        The rows of the nodes, which move from leaf to leaf as they are sent.
    n_nodes : int
        Most nodes that the tree will have.
    max_branches : int
        Most branches of a node.
    """

    cdef Columns bins
    cdef Step* steps
    cdef readonly int n_nodes
    cdef readonly int max_branches
    cdef readonly Py_ssize_t n_rows       # of the table
    cdef NodeRows rows
    cdef bint is_counted                  # whether n_steps are up to date
    cdef const uint8_t[::1] only_branch
    cdef int32_t[:, ::1] child
    cdef const int32_t* order             # of `rows`
    cdef int32_t[::1] scratch             # for rows that are sent or sorted, where losses stand
    cdef int32_t[::1] care_row            # rows of a level that care; leaves' numbers of sent rows
    cdef double[:, ::1] care_loss         # what they lose in branch 1, 2, .. beyond branch 0
    cdef LossBlock* blocks
    cdef Py_ssize_t n_blocks
    cdef int64_t[::1] first_block         # of each node of the level, and the end
    cdef int64_t n_moved                  # rows that were sent since leaves were sorted
    cdef list _arrays                     # keeps the memory alive

    def __cinit__(
        self, Columns bins not None, NodeRows rows not None, int n_nodes, int max_branches
    ):
        cdef:
            int node
            Py_ssize_t n_places = rows._order.shape[0]
        if n_nodes < 1 or not 2 <= max_branches <= 254:
            raise ValueError("n_nodes or max_branches is out of range")
        if bins.n_columns == 0 or bins.column[0].kind > UINT32:
            raise ValueError("column 0 does not hold bins")
        self.bins = bins
        self.n_nodes = n_nodes
        self.max_branches = max_branches
        self.n_rows = bins.n_rows
        if rows.n_rows > self.n_rows:
            raise ValueError("there are fewer rows of bins than of nodes")
        self.rows = rows
        rows.make_room(n_nodes)
        self.order = &rows._order[0] if n_places else NULL
        self._arrays = [None] * n_nodes
        self.only_branch = np.zeros(bins.column[0].largest + 1, dtype=np.uint8)
        self.child = np.zeros((n_nodes, max_branches), dtype=np.int32)
        self.care_row = np.empty(n_places, dtype=np.int32)
        losses = np.empty((n_places, max_branches - 1))
        self.care_loss = losses
        # Losses are forgotten before rows are sent.
        self.scratch = losses.reshape(-1).view(np.int32)[:n_places]
        self.first_block = np.zeros(1, dtype=np.int64)
        self.steps = <Step*> calloc(n_nodes, sizeof(Step))
        if self.steps == NULL:
            raise MemoryError("no memory to route rows")
        for node in range(n_nodes):
            self.steps[node].parent = -1
            self.stay_at(node)

    def __dealloc__(self):
        free(self.steps)
        free(self.blocks)

    cdef int check_node(self, int node) except -1:
        if not 0 <= node < self.n_nodes:
            raise ValueError("nodes must lie between 0 and the number of nodes")
        return 0

    cdef int check_nodes(self, const int32_t[::1] nodes, int n_threads) except -1:
        cdef Py_ssize_t i
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        for i in range(nodes.shape[0]):
            self.check_node(nodes[i])
        return 0

    # Splits

    cdef void stay_at(self, int leaf) noexcept:
        self.child[leaf, 0] = leaf
        self.steps[leaf].child = &self.child[leaf, 0]
        self.steps[leaf].codes = self.bins.column[0].data
        self.steps[leaf].kind = self.bins.column[0].kind
        self.steps[leaf].branch_of_bin = &self.only_branch[0]
        self.steps[leaf].cuts = NULL
        self.steps[leaf].n_branches = 0
        self.steps[leaf].n_pieces = 0
        self.is_counted = False

    cdef void lead_to(self, int node, const int32_t* children, int n_children) noexcept:
        """Note a node's children, and that they are no other node's."""
        cdef:
            int b
            Step* step = &self.steps[node]
        step.is_new = True
        step.has_new_children |= step.n_branches != n_children
        for b in range(step.n_branches):
            self.steps[self.child[node, b]].parent = -1
        for b in range(n_children):
            step.has_new_children |= self.child[node, b] != children[b]
            self.steps[children[b]].parent = node
            self.child[node, b] = children[b]
        step.n_branches = n_children
        self.is_counted = False

    cdef int read_children(self, int node, children, int32_t* child) except -1:
        """Numbers of a node's children; returns how many they are."""
        cdef int b, other, n_children = min(len(children), 256)
        self.check_node(node)
        if not 2 <= n_children <= self.max_branches:
            raise ValueError("the number of branches is out of range")
        for b in range(n_children):
            child[b] = children[b]
            if not node < child[b] < self.n_nodes:
                raise ValueError("children exist and come after their parents")
            for other in range(b):
                if child[other] == child[b]:
                    raise ValueError("children differ")
        return n_children

    def set_leaf(self, int node):
        """Make a node a leaf."""
        self.check_node(node)
        self.lead_to(node, NULL, 0)
        self._arrays[node] = None
        self.stay_at(node)

    def set_bins(
        self, int node, children, int feature, const uint8_t[::1] branch_of_bin not None,
    ):
        """Split a node by the branches of a feature's bins, to the children with some numbers."""
        cdef:
            Py_ssize_t i
            int32_t child[256]
            int greatest = 0, n_children = self.read_children(node, children, child)
        if not 0 <= feature < self.bins.n_columns or self.bins.column[feature].kind > UINT32:
            raise ValueError(f"{feature} is not a column of bins")
        if branch_of_bin.shape[0] <= self.bins.column[feature].largest:
            raise ValueError("every bin needs a branch")
        for i in range(branch_of_bin.shape[0]):
            greatest = max(greatest, branch_of_bin[i])
        if greatest >= n_children:
            raise ValueError("branches of bins exist")
        self.lead_to(node, child, n_children)
        self._arrays[node] = branch_of_bin
        self.steps[node].codes = self.bins.column[feature].data
        self.steps[node].kind = self.bins.column[feature].kind
        self.steps[node].branch_of_bin = &branch_of_bin[0]
        self.steps[node].cuts = NULL
        self.steps[node].n_pieces = branch_of_bin.shape[0]

    def set_cuts(self, int node, children, PairCuts cuts not None):
        """Split a node by the cuts of a pair, to the children with some numbers."""
        cdef:
            int32_t child[256]
            int n_children = self.read_children(node, children, child)
        if cuts.n_rows != self.n_rows or cuts.least_branch < 0 or (
                cuts.greatest_branch >= n_children):
            raise ValueError("branches of regions exist, and tables have as many rows as bins")
        self.lead_to(node, child, n_children)
        self._arrays[node] = cuts
        self.steps[node].cuts = &cuts.cuts
        self.steps[node].n_pieces = n_regions(&cuts.cuts) + 1

    cdef int count_steps(self) except -1:
        """Find out how far each node is above its deepest leaf."""
        cdef int node, b, child
        if self.is_counted:
            return 0
        for node in range(self.n_nodes - 1, -1, -1):
            self.steps[node].n_steps = 0
            for b in range(self.steps[node].n_branches):
                child = self.child[node, b]
                if self.steps[child].parent != node:
                    raise ValueError("a node has two parents")
                self.steps[node].n_steps = max(
                    self.steps[node].n_steps, 1 + self.steps[child].n_steps)
        self.is_counted = True
        return 0

    # Rows that move

    def send(self, const int32_t[::1] nodes not None, int n_threads):
        """Send the rows of some nodes, none of them below another, to the leaves below."""
        cdef:
            Py_ssize_t i, block, n_blocks = 0, n_places = 0
            int node, n_below
            int64_t n
            int64_t[::1] places
            int32_t[::1] number_of_leaf = np.zeros(self.n_nodes, dtype=np.int32)
            SentBlock* blocks
        self.check_nodes(nodes, n_threads)
        self.count_steps()
        self.forget_losses()
        sending = [node for node in nodes if self.steps[node].n_branches]
        all_below = [self.nodes_below(node) for node in sending]
        n_leaves = [self.number_leaves(below, number_of_leaf) for below in all_below]
        for node, n_below in zip(sending, n_leaves):
            n = self.n_blocks_of(node)
            n_blocks += n
            n_places += n * (n_below + APART)
        places = np.zeros(n_places + 1, dtype=np.int64)
        blocks = <SentBlock*> malloc((n_blocks + 1) * sizeof(SentBlock))
        if blocks == NULL:
            raise MemoryError("no memory to send rows")
        try:
            n_blocks = n_places = 0
            for node, below, n_below in zip(sending, all_below, n_leaves):
                self.fill_blocks(
                    blocks + n_blocks, node, self.is_all_else_old(below), &places[n_places],
                    n_below)
                n = self.n_blocks_of(node)
                n_blocks += n
                n_places += n * (n_below + APART)
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                self.count_block(&blocks[block], &number_of_leaf[0])
            i = 0
            for node, below, n_below in zip(sending, all_below, n_leaves):
                n = self.n_blocks_of(node)
                share_places(blocks + i, n, n_below)
                self.place_below(below, blocks[i].place)
                i += n
            # Neighbours write next to each other, so that a thread had better do many of them.
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="guided"):
                self.move_block(&blocks[block])
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                self.copy_block(&blocks[block])
        finally:
            free(blocks)
        for node in sending:
            self.n_moved += self.rows._stop[node] - self.rows._start[node]
        if self.n_moved > SORT_AFTER * self.rows._order.shape[0]:
            self.sort_leaves(n_threads)
            self.n_moved = 0

    cdef int number_leaves(
        self, const int32_t[::1] below, int32_t[::1] number_of_leaf
    ) except -1:
        """Number the leaves below a node; returns how many there are."""
        cdef:
            Py_ssize_t at
            int n_leaves = 0
        for at in range(below.shape[0]):
            if self.steps[below[at]].n_branches == 0:
                number_of_leaf[below[at]] = n_leaves
                n_leaves += 1
        return n_leaves

    cdef int64_t n_blocks_of(self, int node) noexcept:
        """Blocks that a node's rows are sent in, one at least."""
        return max(1, (self.rows._stop[node] - self.rows._start[node] + BLOCK - 1) // BLOCK)

    cdef void fill_blocks(
        self, SentBlock* blocks, int node, bint keeps_rest, int64_t* places, Py_ssize_t n_leaves
    ) noexcept:
        cdef int64_t i, first = self.rows._start[node], last = self.rows._stop[node]
        for i in range(self.n_blocks_of(node)):
            blocks[i].node = node
            blocks[i].keeps_rest = keeps_rest
            blocks[i].first = first + i * BLOCK
            blocks[i].last = min(first + (i + 1) * BLOCK, last)
            blocks[i].place = places + i * (n_leaves + APART)

    def stand_at(self, NodeRows rows not None):
        """Go on with a copy of where the rows are, and leave the other as it is."""
        if rows.n_rows > self.n_rows or rows._order.shape[0] != self.rows._order.shape[0]:
            raise ValueError("the rows are not those of the tree")
        rows.make_room(self.n_nodes)
        self.rows = rows
        self.order = &rows._order[0] if rows._order.shape[0] else NULL

    def reorder_rows(self, int n_threads):
        """Move the rows of the bins themselves to where they stand in the tree, and number them so.

        Every row must be at the root once, and the bins be nobody else's. Returns the numbers that
        the rows had.
        """
        self.bins.reorder(self.rows.order, n_threads)
        self.forget_losses()
        return self.rows.renumber()

    cdef int sort_leaves(self, int n_threads) except -1:
        """Sort the rows within each leaf, so that loops go through columns in one direction."""
        cdef:
            Py_ssize_t i
            const int32_t[::1] nodes = self.nodes_below(0)
        for i in prange(nodes.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic"):
            if self.steps[nodes[i]].n_branches == 0:
                self.sort_leaf(nodes[i])
        return 0

    cdef void sort_leaf(self, int leaf) noexcept nogil:
        cdef Py_ssize_t first = self.rows._start[leaf], n = self.rows._stop[leaf] - first
        if n >= MIN_SORTED:
            sort_rows(&self.rows._order[first], &self.scratch[first], n,
                      <uint32_t> self.rows.n_rows)

    cdef object nodes_below(self, int node):
        """A node and all below it, each before its children, these in the order of branches."""
        cdef:
            int b
            list found = [], pending = [node]
        while pending:
            node = pending.pop()
            found.append(node)
            for b in range(self.steps[node].n_branches - 1, -1, -1):
                pending.append(self.child[node, b])
        return np.array(found, dtype=np.int32)

    cdef void place_below(self, const int32_t[::1] below, const int64_t* place) noexcept:
        """Set the ranges of a node and all below it, given where the leaves start."""
        cdef:
            Py_ssize_t at, leaf = 0
            int node, n_branches
            int64_t stop = self.rows._stop[below[0]]
        for at in range(below.shape[0]):
            if self.steps[below[at]].n_branches == 0:
                self.rows._start[below[at]] = place[leaf]
                leaf += 1
        for at in range(below.shape[0] - 1, -1, -1):
            node = below[at]
            n_branches = self.steps[node].n_branches
            if n_branches == 0:
                self.rows._stop[node] = stop
                stop = self.rows._start[node]
            else:
                self.rows._start[node] = self.rows._start[self.child[node, 0]]
                self.rows._stop[node] = self.rows._stop[self.child[node, n_branches - 1]]

    cdef bint is_all_else_old(self, const int32_t[::1] below) noexcept:
        """Whether only the first node's split is new, not what it leads to; forgets what is new."""
        cdef:
            Py_ssize_t at
            bint is_old = not self.steps[below[0]].has_new_children
        for at in range(below.shape[0]):
            is_old &= at == 0 or not self.steps[below[at]].is_new
            self.steps[below[at]].is_new = False
            self.steps[below[at]].has_new_children = False
        return is_old

    cdef void count_block(
        self, const SentBlock* block, const int32_t* number_of_leaf
    ) noexcept nogil:
        """Note the new leaf of each row of a block, and count the rows of each."""
        cdef:
            Py_ssize_t at = block.first, stop
            int leaf = block.node, own = -1
        while at < block.last:
            stop = block.last
            if block.keeps_rest:
                leaf = self.leaf_at(block.node, at, &own)
                stop = min(max(self.rows._stop[leaf], at + 1), block.last)
            while at < stop:
                self.count_rows(block.node, at, min(at + CHUNK, stop), leaf, own, number_of_leaf,
                                block.place)
                at = min(at + CHUNK, stop)

    cdef void count_rows(
        self, int node, Py_ssize_t first, Py_ssize_t last, int leaf, int own,
        const int32_t* number_of_leaf, int64_t* count,
    ) noexcept nogil:
        """Note the new leaves of a few rows; those that stay in branch `own` stay in `leaf`."""
        cdef:
            Py_ssize_t i, n = last - first
            int32_t number
            int32_t leaf_of_row[CHUNK]
            const Step* step = &self.steps[node]
            int b
        if own < 0:
            leaves_below(self.steps, node, self.order + first, n, leaf_of_row)
        else:
            for i in range(n):
                b = branch_at(step, self.order[first + i])
                leaf_of_row[i] = leaf if b == own else step.child[b]
            follow(self.steps, step.n_steps - 1, self.order + first, n, leaf_of_row)
        for i in range(n):
            number = number_of_leaf[leaf_of_row[i]]
            self.care_row[first + i] = number
            count[number] += 1

    cdef void move_block(self, const SentBlock* block) noexcept nogil:
        cdef:
            Py_ssize_t at
            int32_t number
        for at in range(block.first, block.last):
            number = self.care_row[at]
            self.scratch[block.place[number]] = self.order[at]
            block.place[number] += 1

    cdef void copy_block(self, const SentBlock* block) noexcept nogil:
        if block.last > block.first:
            memcpy(&self.rows._order[block.first], &self.scratch[block.first],
                   (block.last - block.first) * sizeof(int32_t))

    # Counts

    def pieces_below(self, int node, weights, row_counts=None):
        """What nodes and pieces would hold if a node's rows were sent down now.

        Returns, for every node of the tree, its rows and their weight (None without weights), and
        a dict of each split node's rows by piece: bins, or regions of a pair, missing values last.
        A row may count as several.
        """
        cdef:
            Py_ssize_t at, row
            int here
            int64_t** counts
            int64_t[::1] n_rows, piece
            double[::1] weight_of, given
            int64_t[::1] times
            int64_t n_times = 1
            bint has_weights = weights is not None, has_counts = row_counts is not None
        self.check_node(node)
        self.count_steps()
        given = np.ones(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        times = np.ascontiguousarray(row_counts if has_counts else np.ones(0), dtype=np.int64)
        if has_weights and given.shape[0] != self.n_rows or (
                has_counts and times.shape[0] != self.n_rows):
            raise ValueError("weights and counts must be (n_rows,)")
        found, weighed = np.zeros(self.n_nodes, dtype=np.int64), np.zeros(self.n_nodes)
        n_rows, weight_of = found, weighed
        pieces = {}
        counts = <int64_t**> calloc(self.n_nodes, sizeof(int64_t*))
        if counts == NULL:
            raise MemoryError("no memory to count rows")
        for here in self.nodes_below(node):
            if self.steps[here].n_branches:
                pieces[here] = np.zeros(self.steps[here].n_pieces, dtype=np.int64)
                piece = pieces[here]
                counts[here] = &piece[0]
        with nogil:
            for at in range(self.rows._start[node], self.rows._stop[node]):
                row = self.order[at]
                here = node
                if has_counts:
                    n_times = times[row]
                while True:
                    n_rows[here] += n_times
                    if has_weights:
                        weight_of[here] += given[row]
                    if self.steps[here].n_branches == 0:
                        break
                    counts[here][piece_at(&self.steps[here], row)] += n_times
                    here = self.child[here, branch_at(&self.steps[here], row)]
        free(counts)
        return found, weighed if has_weights else None, pieces

    def piece_counts(self, const int32_t[::1] nodes not None, int n_threads):
        """Rows of some split nodes by piece, a list of arrays as in `pieces_below`."""
        cdef:
            Py_ssize_t i, n_nodes = nodes.shape[0]
            int64_t[::1] flat, starts
        self.check_nodes(nodes, n_threads)
        sizes = [self.steps[node].n_pieces for node in nodes]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        starts = bounds
        counts = np.zeros(starts[n_nodes], dtype=np.int64)
        flat = counts
        for i in prange(n_nodes, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if starts[i + 1] > starts[i]:
                self.count_pieces(nodes[i], &flat[starts[i]])
        return [counts[starts[i]:starts[i + 1]] for i in range(n_nodes)]

    cdef void count_pieces(self, int node, int64_t* count) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.rows._start[node], self.rows._stop[node]):
            count[piece_at(&self.steps[node], self.order[at])] += 1

    def branch_counts(self, int node, split_at, int n_branches):
        """Rows of a node in each branch, if its split were another: bins' branches, or cuts.

        Parameters
        ----------
        node : int
        split_at : tuple (feature, branch_of_bin) or PairCuts
        n_branches : int
        """
        cdef:
            Py_ssize_t at
            int feature
            const uint8_t[::1] branch_of_bin
            const Column* column
            PairCuts cuts
            int64_t count[256]
        self.check_node(node)
        if not 1 <= n_branches <= 254:
            raise ValueError("the number of branches is out of range")
        memset(count, 0, sizeof(count))
        if isinstance(split_at, PairCuts):
            cuts = split_at
            if cuts.n_rows != self.n_rows or cuts.least_branch < 0 or cuts.greatest_branch > 255:
                raise ValueError(
                    "branches of regions exist, and tables have as many rows as bins")
            with nogil:
                for at in range(self.rows._start[node], self.rows._stop[node]):
                    count[branch_by_cuts(&cuts.cuts, self.order[at])] += 1
        else:
            feature, branch_of_bin = split_at
            if not 0 <= feature < self.bins.n_columns or self.bins.column[feature].kind > UINT32:
                raise ValueError(f"{feature} is not a column of bins")
            column = &self.bins.column[feature]
            if branch_of_bin is None or branch_of_bin.shape[0] <= column.largest:
                raise ValueError("every bin needs a branch")
            with nogil:
                for at in range(self.rows._start[node], self.rows._stop[node]):
                    count[branch_of_bin[code_at(column, self.order[at])]] += 1
        return [count[branch] for branch in range(n_branches)]

    # Losses

    cdef int check_losses(self, LeafLosses losses) except -1:
        if losses is None or losses.n_rows != self.n_rows:
            raise ValueError("the losses and the bins differ in their numbers of rows")
        return 0

    cdef int check_table(
        self, LeafLosses losses, const double[:, ::1] table, Py_ssize_t n_nodes,
        const double[::1] anchors,
    ) except -1:
        self.check_losses(losses)
        if table.shape[0] != self.n_nodes or table.shape[1] != losses.n_columns:
            raise ValueError("the table must have a line for each node")
        if anchors.shape[0] != n_nodes:
            raise ValueError("each node needs an anchor")
        return 0

    def leaf_sums(self, const int32_t[::1] leaves not None, LeafLosses losses not None,
                  int n_threads):
        """What the rows of each leaf add up to: weight of each label, or of all and of values.

        Returns an array (n_leaves, losses.width).
        """
        cdef:
            Py_ssize_t i, n_leaves = leaves.shape[0]
            double[:, ::1] sums
        self.check_nodes(leaves, n_threads)
        self.check_losses(losses)
        result = np.zeros((n_leaves, losses.width + APART))
        sums = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if self.rows._stop[leaves[i]] > self.rows._start[leaves[i]]:
                add_targets(&losses.targets, &self.order[self.rows._start[leaves[i]]],
                            self.rows._stop[leaves[i]] - self.rows._start[leaves[i]], &sums[i, 0])
        return np.ascontiguousarray(result[:, :losses.width])

    def leaf_ranges(self, const int32_t[::1] leaves not None, LeafLosses losses not None,
                    int n_threads):
        """Least and greatest value of each leaf's rows, for every output: (n_leaves, 2, n_outputs).

        A leaf without rows has infinite ones, the least above the greatest.
        """
        cdef:
            Py_ssize_t i, at, row, n_leaves = leaves.shape[0]
            int o, n_outputs = losses.n_outputs
            double value
            double[:, :, ::1] found
        self.check_nodes(leaves, n_threads)
        self.check_losses(losses)
        if losses.has_labels:
            raise ValueError("labels have no range")
        result = np.empty((n_leaves, 2, n_outputs))
        result[:, 0], result[:, 1] = np.inf, -np.inf
        found = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            for at in range(self.rows._start[leaves[i]], self.rows._stop[leaves[i]]):
                row = self.order[at]
                for o in range(n_outputs):
                    value = losses.targets.values[row * n_outputs + o]
                    if value < found[i, 0, o]:
                        found[i, 0, o] = value
                    if value > found[i, 1, o]:
                        found[i, 1, o] = value
        return result

    def leaf_totals(
        self,
        const int32_t[::1] leaves not None,    # IN
        LeafLosses losses not None,            # IN
        const double[:, ::1] table not None,   # IN: (n_nodes, n_columns) leaves' lines
        const double[::1] anchors not None,    # IN: (n_leaves,) see `losses`
        int n_threads,
    ):
        """Loss of the rows of each leaf."""
        cdef:
            Py_ssize_t i, n_leaves = leaves.shape[0]
            double[::1] total
        self.check_nodes(leaves, n_threads)
        self.check_table(losses, table, n_leaves, anchors)
        result = np.zeros(n_leaves)
        total = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            total[i] = self.total_of(leaves[i], &losses.targets, &table[leaves[i], 0], anchors[i])
        return result

    cdef double total_of(
        self, int leaf, const RowTargets* targets, const double* line, double anchor
    ) noexcept nogil:
        cdef:
            Py_ssize_t at
            double total = 0.0
        for at in range(self.rows._start[leaf], self.rows._stop[leaf]):
            total += loss_in_leaf(targets, self.order[at], line, anchor)
        return total

    def branch_losses(
        self,
        const int32_t[::1] nodes not None,     # IN: of one level, all of them split
        LeafLosses losses not None,            # IN
        const double[:, ::1] table not None,   # IN: (n_nodes, n_columns) leaves' lines
        const double[::1] anchors not None,    # IN: (n_level,) see `losses`
        int n_threads,
    ):
        """Find out what each branch of some nodes would cost their rows, beyond branch 0.

        The rows' own branch leads to the leaf they are in. Rows for which branches differ are kept
        for `loss_cells` and `care_sets`, until rows are sent again.

        Returns
        -------
        sums : array (n_level, 1 + max_branches)
            Loss of each node's rows in their own branches, in branch 0, and what branch 1, 2, ..
            adds to that.
        n_care : int64 array (n_level,)
            Rows for which branches differ.
        least : array (n_level,)
            What the rows would add to branch 0 if each took the branch where it loses least.
        """
        cdef:
            Py_ssize_t i, block, n_level = nodes.shape[0]
            int width = 1 + self.max_branches, c, n_failed = 0
            double[:, ::1] block_sums, sums
            double[::1] least
            int64_t[::1] n_care
        self.check_nodes(nodes, n_threads)
        self.check_table(losses, table, n_level, anchors)
        self.count_steps()
        for i in range(n_level):
            if self.steps[nodes[i]].n_branches == 0:
                raise ValueError("leaves have no branches")
            if i > 0 and self.rows._start[nodes[i]] < self.rows._stop[nodes[i - 1]]:
                raise ValueError("nodes of a level stand in the order of their rows")
        self.make_blocks(nodes)
        of_blocks = np.zeros((self.n_blocks, width + 1 + APART))
        found, cares = np.zeros((n_level, width)), np.zeros(n_level, dtype=np.int64)
        at_best = np.zeros(n_level)
        block_sums, sums, n_care, least = of_blocks, found, cares, at_best
        for block in prange(self.n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            n_failed += self.compare_block(
                &self.blocks[block], nodes[self.blocks[block].number], &losses.targets,
                &table[0, 0], table.shape[1], anchors[self.blocks[block].number],
                &block_sums[block, 0])
        if n_failed:
            self.forget_losses()
            raise MemoryError("no memory to compare branches")
        for block in range(self.n_blocks):
            i = self.blocks[block].number
            n_care[i] += self.blocks[block].n_care
            least[i] += block_sums[block, width]
            for c in range(width):
                sums[i, c] += block_sums[block, c]
        for i in range(n_level):
            for c in range(2, 1 + self.steps[nodes[i]].n_branches):
                sums[i, c] -= sums[i, 1]
        return found, cares, at_best

    cdef int forget_losses(self) except -1:
        self.n_blocks = 0
        self.first_block = np.zeros(1, dtype=np.int64)
        return 0

    cdef int make_blocks(self, const int32_t[::1] nodes) except -1:
        cdef:
            Py_ssize_t i, n = 0
            int64_t first, stop
        self.n_blocks = 0
        self.first_block = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
        for i in range(nodes.shape[0]):
            n += (self.rows._stop[nodes[i]] - self.rows._start[nodes[i]] + BLOCK - 1) // BLOCK
            self.first_block[i + 1] = n
        free(self.blocks)
        self.blocks = <LossBlock*> malloc(max(n, 1) * sizeof(LossBlock))
        if self.blocks == NULL:
            self.forget_losses()
            raise MemoryError("no memory to compare branches")
        n = 0
        for i in range(nodes.shape[0]):
            stop = self.rows._stop[nodes[i]]
            first = self.rows._start[nodes[i]]
            while first < stop:
                self.blocks[n].number = i
                self.blocks[n].first = first
                self.blocks[n].last = min(first + BLOCK, stop)
                self.blocks[n].n_care = 0
                first += BLOCK
                n += 1
        self.n_blocks = n
        return 0

    cdef int compare_block(
        self, LossBlock* block, int node, const RowTargets* targets, const double* table,
        Py_ssize_t n_columns, double anchor, double* sums,
    ) noexcept nogil:
        """Compare the branches for a block of rows; returns 1 for want of memory."""
        cdef:
            int64_t at = block.first, stop, leaf_stop
            int own, leaf
            double* lost = <double*> malloc(
                self.steps[node].n_branches * CHUNK * sizeof(double))
        if lost == NULL:
            return 1
        while at < block.last:
            leaf = self.leaf_at(node, at, &own)
            leaf_stop = max(self.rows._stop[leaf], at + 1)
            while at < min(leaf_stop, block.last):
                stop = min(at + CHUNK, leaf_stop, block.last)
                self.compare_rows(
                    block, at, stop, &self.steps[node], own, leaf, targets, table, n_columns,
                    anchor, lost, sums)
                at = stop
        free(lost)
        return 0

    cdef int leaf_at(self, int node, int64_t place, int* branch) noexcept nogil:
        """The leaf below a node whose row stands at a place, and the node's branch to it."""
        cdef int b, leaf = node
        while self.steps[leaf].n_branches:
            b = 0
            while b + 1 < self.steps[leaf].n_branches and (
                    self.rows._stop[self.child[leaf, b]] <= place):
                b += 1
            if leaf == node:
                branch[0] = b
            leaf = self.child[leaf, b]
        return leaf

    cdef void compare_rows(
        self, LossBlock* block, int64_t first, int64_t last, const Step* step, int own, int leaf,
        const RowTargets* targets, const double* table, Py_ssize_t n_columns, double anchor,
        double* lost, double* sums,
    ) noexcept nogil:
        """Compare the branches for a few rows of one leaf; `lost` has CHUNK numbers a branch."""
        cdef:
            Py_ssize_t i, n = last - first, out = block.first + block.n_care
            int b, k = step.n_branches, n_others = self.max_branches - 1, child, leaf_of_branch
            const int32_t* rows = self.order + first
            double* others
            double of_branch, total, best, least = 0.0
            int32_t leaf_of_row[CHUNK]
            bint cares
        for b in range(k):
            child = step.child[b]
            total = 0.0
            if b == own or self.steps[child].n_branches == 0:
                leaf_of_branch = leaf if b == own else child
                for i in range(n):
                    lost[b * CHUNK + i] = loss_in_leaf(
                        targets, rows[i], table + leaf_of_branch * n_columns, anchor)
            else:
                leaves_below(self.steps, child, rows, n, leaf_of_row)
                for i in range(n):
                    lost[b * CHUNK + i] = loss_in_leaf(
                        targets, rows[i], table + leaf_of_row[i] * n_columns, anchor)
            for i in range(n):
                total += lost[b * CHUNK + i]
            if b == own:
                sums[0] += total
            if b == 0:
                sums[1] += total
            else:
                sums[1 + b] += total
        # What branches add to the first.
        for i in range(n):
            others = &self.care_loss[out, 0]
            cares = False
            best = 0.0
            for b in range(1, k):
                of_branch = lost[b * CHUNK + i] - lost[i]
                others[b - 1] = of_branch
                cares |= of_branch != 0.0
                best = of_branch if of_branch < best else best
            least += best
            for b in range(k - 1, n_others):
                others[b] = 0.0
            self.care_row[out] = rows[i]
            out += cares
        block.n_care = out - block.first
        sums[1 + self.max_branches] += least

    def room_for_cells(
        self,
        int first,                                 # IN: first node of the level to sum
        const int64_t[::1] offsets not None,       # IN: (n_features + 1,) where their bins start
        const uint8_t[::1] wanted not None,        # IN: (n_level,) which nodes to sum
        int64_t max_cells,                         # IN: most cells, unless one node has more
    ):
        """Where `loss_cells` may put the cells of as many nodes as fit memory.

        Returns the first node that has to wait, the number of rows of the nodes before, and a tuple
        of their `starts`, `n_cells`, `bin_of_cell` and `losses`.
        """
        cdef:
            Py_ssize_t node, f, n_level = self.first_block.shape[0] - 1
            Py_ssize_t n_features = self.bins.n_columns, last = first
            int64_t total = 0, room, n_rows, n_summed = 0
            int64_t[:, ::1] starts
        if not 0 <= first <= n_level or wanted.shape[0] != n_level:
            raise ValueError("every node of the level is wanted or not")
        if offsets.shape[0] != n_features + 1:
            raise ValueError("every feature needs its bins")
        given = np.empty((n_level - first, n_features), dtype=np.int64)
        starts = given
        for node in range(first, n_level):
            n_rows = self.n_care(node) if wanted[node] else 0
            room = total
            for f in range(n_features):
                starts[node - first, f] = room
                room += max(0, min(n_rows, offsets[f + 1] - offsets[f]))
            if node > first and room > max_cells:
                break
            total = room
            n_summed += n_rows
            last = node + 1
        cells = (
            given[:last - first], np.empty((last - first, n_features), dtype=np.int32),
            np.empty(total, dtype=np.int32), np.empty((total, self.max_branches - 1)))
        return last, n_summed, cells

    def loss_cells(
        self,
        int first, int last,                       # IN: nodes of the level
        const int64_t[::1] offsets not None,       # IN: (n_features + 1,) where their bins start
        const int64_t[:, ::1] starts not None,     # IN: (last - first, n_features)
        int32_t[:, ::1] n_cells not None,          # OUT: (last - first, n_features)
        int32_t[::1] bin_of_cell not None,         # OUT
        double[:, ::1] losses not None,            # OUT: (n_cells, max_branches - 1)
        int first_feature, int last_feature,       # IN: which features to fill
        int n_threads,
        const uint8_t[::1] wanted=None,            # IN: (last - first,) which nodes to sum; all
    ):
        """Sum up by bin what rows of the level's nodes lose in branch 1, 2, .. beyond branch 0.

        Bins with rows that care are the *cells* of a node and feature. They stand from
        starts[node, feature] on, in the order of bins; there must be room for one for each such
        row, or for all bins. Nodes that are not wanted have none.
        """
        cdef:
            Py_ssize_t task, n_features = last_feature - first_feature, n_pairs, node, room
            Py_ssize_t most_bins = 0
            int feature, n_others = self.max_branches - 1
            CellScratch scratch
        self.bins.check_bins(offsets, first_feature, last_feature)
        if not 0 <= first <= last < self.first_block.shape[0] or n_threads < 1:
            raise ValueError("nodes of the level or n_threads out of range")
        if losses.shape[0] != bin_of_cell.shape[0] or losses.shape[1] != n_others or (
                starts.shape[0] != last - first or starts.shape[1] != self.bins.n_columns
                or n_cells.shape[0] != last - first or n_cells.shape[1] != self.bins.n_columns):
            raise ValueError("the cells' arrays do not fit the nodes and features")
        if wanted is not None and wanted.shape[0] != last - first:
            raise ValueError("every node is wanted or not")
        for node in range(last - first):
            if wanted is not None and not wanted[node]:
                n_cells[node, first_feature:last_feature] = 0
                continue
            for feature in range(first_feature, last_feature):
                room = min(self.n_care(first + node), offsets[feature + 1] - offsets[feature])
                if not 0 <= starts[node, feature] <= bin_of_cell.shape[0] - room:
                    raise ValueError("there is no room for all cells")
        if first == last or n_features == 0 or bin_of_cell.shape[0] == 0:
            n_cells[:, first_feature:last_feature] = 0
            return
        for feature in range(first_feature, last_feature):
            most_bins = max(most_bins, offsets[feature + 1] - offsets[feature])
        n_pairs = (n_features + 1) // 2
        n_threads = min(n_threads, (last - first) * n_pairs)
        scratch = CellScratch(n_threads, most_bins, n_others)
        for task in prange((last - first) * n_pairs, nogil=True, num_threads=n_threads,
                           schedule="dynamic"):
            # Feature by feature, so that columns stay in the cache from node to node.
            node = task % (last - first)
            feature = <int> (first_feature + 2 * (task // (last - first)))
            if wanted is None or wanted[node]:
                self.fill_two(
                    first + node, feature, min(feature + 2, last_feature), offsets, scratch,
                    threadid(), &starts[node, 0], &n_cells[node, 0], &bin_of_cell[0],
                    &losses[0, 0])

    cdef Py_ssize_t n_care(self, Py_ssize_t number) noexcept nogil:
        """Rows of one of the level's nodes that care."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.first_block[number], self.first_block[number + 1]):
            n += self.blocks[i].n_care
        return n

    cdef void fill_two(
        self, Py_ssize_t number, int feature, int last_feature, const int64_t[::1] offsets,
        CellScratch scratch, int thread, const int64_t* starts, int32_t* n_cells,
        int32_t* bin_of_cell, double* losses,
    ) noexcept nogil:
        """Sum up one node's rows by a feature and the next, unless that is the last."""
        cdef:
            double* sums = scratch.sums + 2 * thread * scratch.n_sums
            uint64_t* marks = scratch.marks + thread * scratch.n_words
            Py_ssize_t n_care = self.n_care(number), n_bins
            bint is_sparse
            bint at_once = (
                feature + 1 < last_feature and self.bins.column[feature].kind == UINT8
                and self.bins.column[feature + 1].kind == UINT8 and n_care >= MIN_AT_ONCE)
            int n_others = self.max_branches - 1
        if at_once:
            self.add_care_to_two(number, feature, sums, sums + scratch.n_sums)
        while feature < last_feature:
            n_bins = offsets[feature + 1] - offsets[feature]
            is_sparse = not at_once and 2 * n_care < n_bins
            if not at_once:
                self.add_care(number, feature, sums, marks if is_sparse else NULL)
            n_cells[feature] = gather_cells(
                sums, marks if is_sparse else NULL, n_bins, n_others,
                bin_of_cell + starts[feature], losses + starts[feature] * n_others)
            if at_once:
                sums = sums + scratch.n_sums
            feature += 1

    cdef void add_care_to_two(
        self, Py_ssize_t number, int feature, double* sums, double* others_sums
    ) noexcept nogil:
        """Add a node's rows that care to the sums of two features, whose bins are bytes."""
        cdef Py_ssize_t i
        for i in range(self.first_block[number], self.first_block[number + 1]):
            add_to_two(
                <const uint8_t*> self.bins.column[feature].data,
                <const uint8_t*> self.bins.column[feature + 1].data,
                &self.care_row[self.blocks[i].first], &self.care_loss[self.blocks[i].first, 0],
                self.blocks[i].n_care, self.max_branches - 1, sums, others_sums)

    cdef void add_care(
        self, Py_ssize_t number, int feature, double* sums, uint64_t* marks
    ) noexcept nogil:
        """Add a node's rows that care to the sums of a feature."""
        cdef:
            Py_ssize_t i, n
            int n_others = self.max_branches - 1
            const Column* column = &self.bins.column[feature]
            const int32_t* rows
            const double* values
        for i in range(self.first_block[number], self.first_block[number + 1]):
            rows = &self.care_row[self.blocks[i].first]
            values = &self.care_loss[self.blocks[i].first, 0]
            n = self.blocks[i].n_care
            if column.kind == UINT8:
                add_losses(<const uint8_t*> column.data, rows, values, n, n_others, sums, marks)
            elif column.kind == UINT16:
                add_losses(<const uint16_t*> column.data, rows, values, n, n_others, sums, marks)
            else:
                add_losses(<const uint32_t*> column.data, rows, values, n, n_others, sums, marks)

    def care_sets(self):
        """Rows of each node of the level that care, and what they lose beyond branch 0.

        Returns a list of pairs of arrays, (n_care,) and (n_care, max_branches - 1).
        """
        cdef Py_ssize_t number, i
        found = []
        order, losses = np.asarray(self.care_row), np.asarray(self.care_loss)
        for number in range(self.first_block.shape[0] - 1):
            parts = [
                slice(self.blocks[i].first, self.blocks[i].first + self.blocks[i].n_care)
                for i in range(self.first_block[number], self.first_block[number + 1])
            ]
            found.append((
                np.concatenate([order[part] for part in parts] or [order[:0]]),
                np.concatenate([losses[part] for part in parts] or [losses[:0]]),
            ))
        return found
