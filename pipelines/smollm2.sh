#!/usr/bin/env bash
# smollm2.sh [PIPELINE [TEST [CALIBRATION]]] -- real.sh smollm2: a pipeline on SmolLM2-135M-Instruct
exec "$(dirname "$0")/real.sh" smollm2 "$@"
