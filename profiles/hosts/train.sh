#!/bin/sh
# Train one cell on several hosts: run this on each of them, within 45 seconds, at the root of a
# clone that they share.
#
#     profiles/hosts/train.sh HOST:PORT HOSTS PROCESSES SYSTEM CORPUS SEED
#
# HOST:PORT is where they meet, HOST being one of them. docs/hosts.md explains the settings.
[ $# = 6 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
echo "$1" | grep -qE '^.+:[0-9]+$' || { echo "no HOST:PORT: $1" >&2; exit 2; }
echo "$2 $3" | grep -qE '^[1-9][0-9]* [1-9][0-9]*$' || { echo "no two numbers: $2 $3" >&2; exit 2; }
meet=$1 hosts=$2 processes=$3
shift 3
# no clock of another host is trusted for an hour (720 x 5 s)
conf=join_timeout=45,read_timeout=45,keep_alive_interval=5,keep_alive_max_attempt=720
code=$(cd "$(dirname "$0")/../../src" && pwd)
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$code"
command -v torchrun > /dev/null || { echo "no torchrun: source .venv/bin/activate" >&2; exit 1; }
# torchrun does not notice by itself that it waits in vain
python -m bleuprint.runtime.distributed.watch "$meet" $$ &
exec torchrun --nnodes "$hosts" --nproc-per-node "$processes" --max-restarts 3 \
  --rdzv-backend c10d --rdzv-endpoint "$meet" --rdzv-id "$1-$2-$3" --rdzv-conf "$conf" \
  -m bleuprint.cli.main train "$@"
