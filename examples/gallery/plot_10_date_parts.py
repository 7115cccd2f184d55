"""
Months, weekdays and hours
==========================

Hires of bicycles repeat by the day and the year, so parts of the date say more than the date. The
hires are made up. There is one year, so it is left out; and as hours come again every day, the
warning that they identify groups of rows is switched off.
"""

import warnings

import numpy as np
import pandas as pd

from shapetree import IdentifierWarning, ShapeTreeRegressor, date_parts, plot_tree

hours = pd.date_range("2024-01-01", "2024-12-31", freq="h")
rng = np.random.default_rng(0)
commute = np.isin(hours.hour, [7, 8, 17, 18]) & (hours.day_of_week < 5)
summer = np.isin(hours.month, [5, 6, 7, 8, 9])
night = (hours.hour < 6) | (hours.hour > 22)
hires = rng.poisson((40 + 120 * commute + 30 * summer) * np.where(night, 0.1, 1))

warnings.filterwarnings("ignore", category=IdentifierWarning)
table = date_parts(pd.DataFrame({"time": hours})).drop(columns="time (year)")
tree = ShapeTreeRegressor(max_depth=3).fit(table, pd.Series(hires, name="hires"))
plot_tree(tree, title="Hires of bicycles by the hour")
