"""Tables of counts: bases, noise, fits and forecasts (theory C7, C10.6, C10.7)."""
