"""Tables with places, categories, dates and missing values. They are made up."""

import numpy as np
import pandas as pd


def make_commuters(n_rows: int = 3_000, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """How people of twelve towns get to work; some do not tell their age."""
    rng = np.random.default_rng(seed)
    flat = ["Münster", "Bremen", "Freiburg", "Oldenburg", "Greifswald"]
    towns = [*flat, "Stuttgart", "Wuppertal", "Kassel", "Essen", "Siegen", "Jena", "Aachen"]
    town = rng.choice(towns, n_rows)
    age = rng.integers(16, 80, n_rows).astype(float)
    distance = np.exp(rng.normal(1.6, 1.0, n_rows))
    wish = 1.4 * np.isin(town, flat) - 0.5 * distance - 0.04 * np.abs(age - 28)
    wish += rng.normal(scale=0.5, size=n_rows)
    way = np.where(wish > -1.9, "bicycle", np.where(distance > 9, "train", "car"))
    age[rng.random(n_rows) < 0.1] = np.nan
    table = pd.DataFrame({"town": town, "age": age, "distance in km": distance})
    return table, pd.Series(way, name="way to work")


def make_houses(n_rows: int = 2_000, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Prices of houses, in thousands; what a house costs depends on where it is."""
    rng = np.random.default_rng(seed)
    longitude, latitude = rng.uniform(8.0, 9.0, n_rows), rng.uniform(53.0, 53.6, n_rows)
    area = np.exp(rng.normal(np.log(110), 0.35, n_rows)).round()
    built = rng.integers(1900, 2024, n_rows)
    heating = rng.choice(["gas", "heat pump", "oil", "district"], n_rows, p=[0.5, 0.2, 0.2, 0.1])
    centre = np.hypot((longitude - 8.6) * 66, (latitude - 53.25) * 111)  # km
    by_river = np.abs(latitude - 53.1 - 0.4 * (longitude - 8.0)) < 0.05
    price = 2.2 * area * (1 + 0.9 * (centre < 12) + 0.5 * by_river)
    price *= 1 + 0.2 * ((built < 1920) | (built > 1995))
    price *= 1 + 0.1 * (heating == "heat pump") - 0.1 * (heating == "oil")
    price *= np.exp(rng.normal(0, 0.15, n_rows))
    table = pd.DataFrame(
        {
            "longitude": longitude.round(4),
            "latitude": latitude.round(4),
            "area in m²": area,
            "built": built,
            "heating": heating,
        }
    )
    return table, pd.Series(price.round(), name="price in 1,000 €")


def make_deliveries(n_rows: int = 2_500, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Parcels of one year, and whether they came late."""
    rng = np.random.default_rng(seed)
    minutes = rng.integers(0, 365 * 24 * 60, n_rows)
    ordered = pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min")
    ordered = pd.Series(ordered)
    depot = rng.choice(["Hamburg", "Leipzig", "Köln", "Nürnberg", "Kassel", "Ulm"], n_rows)
    service = pd.Categorical(
        rng.choice(["economy", "standard", "express"], n_rows, p=[0.3, 0.5, 0.2]),
        categories=["economy", "standard", "express"],
        ordered=True,
    )
    weight = np.exp(rng.normal(0.7, 0.9, n_rows)).round(1)
    strike = (ordered >= "2024-05-06") & (ordered < "2024-05-27") & (depot != "Ulm")
    risk = -2.2 + 2.6 * strike + 1.6 * (ordered.dt.month == 12) + 1.2 * (weight > 10)
    risk += np.isin(depot, ["Köln", "Kassel"]) - 1.2 * (service == "express")
    late = rng.random(n_rows) < 1 / (1 + np.exp(-risk.to_numpy()))
    weight[rng.random(n_rows) < 0.05] = np.nan
    table = pd.DataFrame(
        {"ordered": ordered, "depot": depot, "service": service, "weight in kg": weight}
    )
    return table, pd.Series(np.where(late, "late", "in time"), name="delivery")
