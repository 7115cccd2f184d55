"""Picture: a finished drawing, and the axes it is drawn on."""

from __future__ import annotations

import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapetree.plot._layout import Box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


class Drawing(ABC):
    """What a picture is made from: it can be drawn into any axes."""

    nodes: dict[int, Box]  # where nodes are drawn

    @abstractmethod
    def make_axes(self, figure: Figure) -> Axes:
        """Axes for the drawing alone, in a figure that becomes as large as it has to be."""

    @abstractmethod
    def draw(self, ax: Axes) -> list[Text]:
        """Draw into axes; all texts are returned."""


class Picture:
    """A drawing of a tree, of a node, or of a path of trees.

    In a notebook it shows itself; in a script, call `show` or `save`. Unless axes were given, its
    figure is not one of pyplot's, so there is nothing to close.

    Attributes
    ----------
    figure : matplotlib Figure
    ax : matplotlib Axes
        In its data coordinates, y grows downwards where nodes are drawn.
    nodes : dict of int to (x0, y0, x1, y1)
        Box of every node that is drawn, in data coordinates.
    texts : list of matplotlib Text

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> from shapetree import plot_tree
    >>> picture = plot_tree(tree)
    >>> picture.save("tree.png")  # doctest: +SKIP
    >>> len(picture.nodes) == tree.tree_.node_count
    True
    """

    def __init__(self, drawing: Drawing, ax: Axes | None) -> None:
        self._drawing = drawing
        self._is_own_figure = ax is None
        if ax is None:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure

            figure = Figure()
            FigureCanvasAgg(figure)
            ax = drawing.make_axes(figure)
        self.ax: Axes = ax
        self.figure: Figure = root_figure(ax)
        self.nodes = drawing.nodes
        self.texts: list[Text] = drawing.draw(ax)

    def save(self, path: str | Path, **kwargs: Any) -> None:
        """Write the figure to a file; its ending says the format.

        Parameters
        ----------
        path : str or Path
        **kwargs
            For matplotlib's `Figure.savefig`, such as `dpi`.
        """
        with _glyphs_known():
            self.figure.savefig(path, **kwargs)

    def show(self) -> None:
        """Open the picture in a window, as `matplotlib.pyplot.show` does."""
        import matplotlib.pyplot as plt

        if not self._is_own_figure:
            plt.show()
            return
        figure = plt.figure()
        try:
            with _glyphs_known():
                self._drawing.draw(self._drawing.make_axes(figure))
                plt.show()
        finally:
            # Otherwise, the window is still open.
            if not plt.isinteractive():
                plt.close(figure)

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        words = {0: "", 1: " of 1 node"}.get(len(self.nodes), f" of {len(self.nodes)} nodes")
        return f"<Picture{words}, {width:.1f} x {height:.1f} inch>"

    def _repr_html_(self) -> str | None:
        """The picture as SVG for notebooks; None if its figure is the user's to show."""
        if not self._is_own_figure:
            return None
        buffer = io.StringIO()
        with _glyphs_known():
            self.figure.savefig(buffer, format="svg")
        drawing = buffer.getvalue()
        return f'<div style="overflow-x: auto">{drawing[drawing.index("<svg") :]}</div>'


def check_picture(ax: Any, title: Any) -> None:
    """Refuse to draw without matplotlib, on axes that cannot be drawn on, or with no real title."""
    import_matplotlib()
    if not (title is None or isinstance(title, str)):
        raise TypeError(f"title must be None or a string, got {title!r}")
    if ax is None:
        return
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be a matplotlib Axes, got {type(ax).__name__}; "
            "make one with matplotlib.pyplot.subplots()"
        )
    if ax.name != "rectilinear":
        raise ValueError(f"ax has the projection {ax.name!r}; a tree needs plain axes")
    if ax.get_figure() is None or not _is_shown(ax):
        raise ValueError("ax was removed from its figure; make a new one")


def import_matplotlib() -> None:
    """Say how to install matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib; install it with pip install shapetree[plot]"
        ) from error


@contextmanager
def _glyphs_known() -> Iterator[None]:
    """Within this, matplotlib does not warn of letters that no font has: that was said once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(Glyph \d+|Matplotlib currently does not)")
        yield


def before_drawing(ax: Axes, arrange: Callable[[Any], None]) -> None:
    """Have something done, with the renderer, whenever axes are drawn, before all else of them."""
    from matplotlib.artist import Artist

    class Arranger(Artist):
        """Shows nothing, but is drawn."""

        def draw(self, renderer: Any) -> None:
            arrange(renderer)

    artist = Arranger()
    artist.set_zorder(-1e9)
    artist.set_in_layout(False)
    ax.add_artist(artist)


def root_figure(ax: Axes) -> Figure:
    """The figure that axes are in, perhaps in a subfigure of it."""
    figure: Any = ax.get_figure()
    return figure.figure


def _is_shown(ax: Axes) -> bool:
    """Whether the axes, or axes they are set into, are among those of their figure."""
    pending: list[Any] = list(root_figure(ax).axes)
    for other in pending:
        if other is ax:
            return True
        pending.extend(other.child_axes)
    return False
