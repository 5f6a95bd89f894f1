#!/bin/sh
# Asks a question over HTTP with curl, follows its events and prints the answer: sh ask.sh 'Why did checkout slow down?'
# The question stands in JSON here: without quotes and backslashes. RAMIFY_URL: the server; RAMIFY_KEY: an API key.
url=${RAMIFY_URL:-http://127.0.0.1:8321}
ramify() { curl --fail-with-body -sS ${RAMIFY_KEY:+-H "Authorization: Bearer $RAMIFY_KEY"} "$@"; }

taken=$(ramify "$url/v1/jobs" -H 'Content-Type: application/json' -d "{\"question\": \"$1\"}") || {
  echo "$taken" >&2 # a problem: its `detail` says what to do
  exit 1
}
job=$(echo "$taken" | sed 's/.*"job_id": *"\([^"]*\)".*/\1/')
ramify -N "$url/v1/jobs/$job/events" >&2
ramify "$url/v1/jobs/$job/result"
