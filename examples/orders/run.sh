#!/bin/sh
# run.sh: sends 1,000 orders and works on them until all is done; ends with the summary.
#
#   ./run.sh [PROGRAM]     the program is `mulligan` unless it is named
set -eu
mulligan=${1-mulligan}
cd "$(dirname "$0")"

rm -f orders.db orders.db-*
echo "sending 1,000 orders ..."
lua5.4 make-orders.lua | "$mulligan" send orders --transport orders
echo "working on them, and on an invoice for each that goes well; what happens to each that fails is in $PWD/run.log ..."
"$mulligan" run --until-empty 2>run.log || {
    tail -n 5 run.log >&2
    exit 1
}
