# Runs on another machine: reads facts of it and changes nothing. Any POSIX shell.
# Its data are two lines: a mark that begins each line of ours in what it prints, and the folder of the models.
# shellcheck disable=SC2317  # Functions are called by name, through `part`.
LC_ALL=C
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/cuda/bin
[ -n "${XDG_RUNTIME_DIR:-}" ] || XDG_RUNTIME_DIR=/run/user/$(id -u)
export LC_ALL PATH XDG_RUNTIME_DIR
IFS= read -r mark
IFS= read -r models
exec </dev/null
case $models in [~]/*) models=$HOME/${models#[~]/} ;; esac

has() { command -v "$1" >/dev/null 2>&1; }

bounded() {
    if has timeout; then timeout 10 "$@"; else "$@"; fi
}

# part NAME COMMAND…: what it prints, and how it ended; its errors are part of it.
part() {
    name=$1
    shift
    printf '\n%s begin %s\n' "$mark" "$name"
    "$@" 2>&1
    printf '\n%s end %s\n' "$mark" "$?"
}

# only NAME PROGRAM COMMAND…: the same where the program is there at all.
only() {
    if has "$2"; then
        wanted=$1
        shift 2
        part "$wanted" bounded "$@"
    fi
}

python() {
    command -v python3 && python3 --version
}

processor() {
    grep -m1 '^model name' /proc/cpuinfo
    getconf _NPROCESSORS_ONLN
}

# One line for each process whose command line may be that of an engine: its fields are kept apart by the
# control character 037, its words too; then what it listens on, as the kernel writes it.
processes() {
    grep -l -a -i -E 'vllm|llama|sglang|ollama' /proc/[0-9]*/cmdline 2>/dev/null | head -n 200 |
        while IFS= read -r file; do
            folder=${file%/cmdline}
            printf '%s process\037%s\037%s\037' "$mark" "${folder#/proc/}" "$(stat -c %U "$folder" 2>/dev/null)"
            head -c 16000 "$file" 2>/dev/null | tr '\000\n' '\037\036'
            printf '\n%s sockets' "$mark"
            # shellcheck disable=SC2012  # The names are numbers, and where they lead is what counts.
            ls -l "$folder/fd" 2>/dev/null | sed -n 's/.* socket:\[\([0-9]*\)\]$/ \1/p' | tr -d '\n'
            printf '\n'
            cat "$folder/net/tcp" "$folder/net/tcp6" 2>/dev/null | grep ' 0A '
        done
    return 0
}

# What shows why a driver lists no GPU, each a word and its values.
surroundings() {
    printf 'system %s\n' "$(uname -s)"
    printf 'user %s\n' "$(id -un)"
    for device in /sys/bus/pci/devices/*; do
        [ -e "$device/class" ] || continue
        printf 'bus\n'
        case $(cat "$device/class") in 0x03*)
            printf 'card %s %s %s %s\n' "${device##*/}" "$(cat "$device/vendor")" "$(cat "$device/device")" \
                "$(basename "$(readlink "$device/driver" 2>/dev/null)" 2>/dev/null)"
            ;;
        esac
    done | sort -u
    [ ! -r /proc/driver/nvidia/version ] || printf 'module %s\n' "$(head -n 1 /proc/driver/nvidia/version)"
    for library in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /lib64 /usr/lib/wsl/lib /usr/local/nvidia/lib64; do
        [ ! -e "$library/libnvidia-ml.so.1" ] || readlink -f "$library/libnvidia-ml.so.1" | sed 's/^/library /'
    done
    for node in /dev/nvidiactl /dev/nvidia[0-9]*; do
        [ -e "$node" ] || continue
        printf 'node %s\n' "$node"
        # The file that controls the driver is opened: a container may be refused what its mode permits.
        if [ "$node" = /dev/nvidiactl ] && [ -r "$node" ] && [ -w "$node" ]; then
            (: <>"$node") 2>/dev/null || printf 'closed %s %s\n' "$(stat -c %G "$node")" "$node"
        elif ! { [ -r "$node" ] && [ -w "$node" ]; }; then
            printf 'closed %s %s\n' "$(stat -c %G "$node")" "$node"
        fi
    done
    for container in /.dockerenv /run/.containerenv; do
        [ ! -e "$container" ] || printf 'container %s\n' "$container"
    done
    [ ! -e /dev/dxg ] || printf 'windows\n'
    return 0
}

tools() {
    for tool in python3 cc gcc clang c++ g++ ninja cmake nvcc nvidia-smi docker podman systemctl rsync uv git; do
        command -v "$tool"
    done
    return 0
}

part os cat /etc/os-release
part kernel uname -s -r
part machine uname -m
part user id -un
part home printf '%s\n' "$HOME"
part python python
part processor processor
part memory grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
part disks bounded df -Pk
[ -z "$models" ] || part models bounded df -Pk -- "$models"
only gpus nvidia-smi nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,uuid,name,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,driver_version
only capabilities nvidia-smi nvidia-smi --format=csv,noheader,nounits --query-gpu=uuid,compute_cap
only holders nvidia-smi nvidia-smi --format=csv,noheader,nounits \
    --query-compute-apps=gpu_uuid,pid,used_memory,process_name
part surroundings surroundings
only nvlinks nvidia-smi nvidia-smi nvlink --status
part engines processes
only docker docker docker ps --no-trunc --format '{{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Ports}}'
only podman podman podman ps --no-trunc --format '{{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Ports}}'
only units systemctl systemctl --user list-units --type=service,timer --all --plain --no-legend --no-pager
part tools tools
# The last, so that little time goes by until it is read.
part clock date +%s
exit 0
