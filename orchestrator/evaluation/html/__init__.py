"""An evaluation as one HTML page that needs nothing else: no network, no scripts. Computes no figures."""
