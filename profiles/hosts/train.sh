#!/bin/sh
# Train one run on several hosts: run this on each of them, at the root of a clone that they share.
#
#     profiles/hosts/train.sh HOST:PORT NUMBER HOSTS PROCESSES SYSTEM CORPUS SEED
#
# HOST is host number 0, PORT a free port of it; NUMBER is that of this host, 0 to HOSTS - 1.
# PROCESSES is the number on each host. docs/hosts.md explains the settings.
[ $# = 7 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
echo "$1" | grep -qE '^.+:[0-9]+$' || { echo "no HOST:PORT: $1" >&2; exit 2; }
echo "$2 $3 $4" | grep -qE '^[0-9]+ [1-9][0-9]* [1-9][0-9]*$' ||
  { echo "no three numbers: $2 $3 $4" >&2; exit 2; }
[ "$2" -lt "$3" ] || { echo "host number $2 of $3: they are numbered from 0" >&2; exit 2; }
command -v torchrun > /dev/null || { echo "no torchrun: source .venv/bin/activate" >&2; exit 1; }
endpoint=$1 number=$2 hosts=$3 processes=$4
shift 4
project=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$project/src"
# With equal hosts torchrun computes the ranks instead of asking host 0, which may be lost.
export TORCH_ELASTIC_WORKER_IDENTICAL=1
export PET_MAX_RESTARTS="${PET_MAX_RESTARTS:-3}"  # torchrun's --max-restarts
exec torchrun --nnodes "$hosts" --node-rank "$number" --nproc-per-node "$processes" \
  --master-addr "${endpoint%:*}" --master-port "${endpoint##*:}" \
  --rdzv-conf "timeout=${BLEUPRINT_TIMEOUT:-300}" "$project/stages/train.py" "$@"
