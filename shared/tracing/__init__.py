"""Traces of jobs. Without `telemetry.otlp_url` nothing of OpenTelemetry is loaded, and a span costs a microsecond."""
