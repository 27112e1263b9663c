#!/bin/sh
# do: what one does in this tree. On a Debian 12 with nothing but git and a root shell (or sudo),
# each command installs the packages that it misses, and nothing else of the machine changes.
#
#   ./do demo              builds, and runs the orders example until it is done
#   ./do test              builds, and runs every test; the last line says how many passed
#   ./do test asan|tsan    the same tests under the sanitizers
#   ./do test [PRESET] FILE...   the specs and C tests named, such as spec/policy/chains_spec.lua
#   ./do test fuzz [TARGET...]   the fuzz targets of spec/fuzz, MULL_FUZZ_SECONDS (15) each
#   ./do conformance [--write]   the table of the conformance suite's cases by transport; --write: into the docs
#   ./do build [PRESET]    builds only: dev, release, deb, clang, asan, tsan or fuzz
#
# Builds are in build/PRESET, the output of tests in build/PRESET/log.
set -eu
cd "$(dirname "$0")"

build_packages="gcc libc6-dev cmake ninja-build pkg-config lua5.4
    liblua5.4-dev libuv1-dev libsqlite3-dev libxxhash-dev"
test_packages="lua-busted lua-check libcmocka-dev libjansson-dev libmsgpack-dev clang-format g++ sqlite3 python3
    python3-msgpack luarocks libcurl4-openssl-dev"

# For the tests of amqp: that need the real server, and for its module. Where they can't be installed, these tests are
# skipped.
rabbitmq_packages="rabbitmq-server librabbitmq-dev libssl-dev openssl"

say() { printf '%s\n' "$*" >&2; }
fail() { say "do: $*"; exit 2; }

# needs_folder PATH: makes it, or says that nothing can be built in this tree.
needs_folder() {
    if why=$(mkdir -p "$1" 2>&1); then
        [ ! -w "$1" ] || return 0
        why="$1 is not writable"
    fi
    fail "can't write to $PWD, where builds go ($why); copy the tree to a folder of yours"
}

# ---- Packages ----------------------------------------------------------------------------------

# For what is installed: man pages and packages, and shells to try completions in.
install_packages="scdoc zsh fish dpkg-dev file zlib1g-dev"

if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi

# without_services COMMAND...: what is installed meanwhile starts nothing on this machine.
without_services() {
    rules=/usr/sbin/policy-rc.d status=0
    if [ -e $rules ]; then # the machine has its own
        "$@"
        return
    fi
    trap '$sudo rm -f $rules' EXIT
    printf '#!/bin/sh\nexit 101\n' | $sudo tee $rules >/dev/null
    $sudo chmod 755 $rules
    "$@" || status=$?
    $sudo rm -f $rules
    trap - EXIT
    return $status
}

apt_install() {
    without_services $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

update_and_install() {
    # shellcheck disable=SC2086
    $sudo apt-get update -q && apt_install $missing
}

# is_here PACKAGE
is_here() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need PACKAGE...: installs those that are missing. The lists of packages are fetched only where
# the ones at hand are too old or too few.
need() {
    command -v dpkg-query >/dev/null || { say "do: not a Debian; this needs: $*"; return 0; }
    missing=
    for package in "$@"; do
        is_here "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    [ -z "$sudo" ] || command -v sudo >/dev/null || fail "not root, and no sudo; please install$missing"
    needs_folder build
    say "do: installing$missing"
    # shellcheck disable=SC2086 # its words are packages
    apt_install $missing >build/packages.log 2>&1 ||
        update_and_install >>build/packages.log 2>&1 ||
        { tail -n 20 build/packages.log >&2; fail "can't install$missing"; }
}

# need_rabbitmq: the tests start a server of their own. What its packages would start, now and at each start of the
# machine, stays off, unless they were here before.
need_rabbitmq() {
    units=
    is_here rabbitmq-server || units=rabbitmq-server.service
    is_here erlang-base || units="$units epmd.socket epmd.service"
    # shellcheck disable=SC2086
    (need $rabbitmq_packages) || say "do: without RabbitMQ its tests are skipped"
    is_here rabbitmq-server || return 0
    for unit in $units; do
        $sudo update-rc.d "${unit%.*}" disable >/dev/null 2>&1 || true
        ! command -v systemctl >/dev/null || $sudo systemctl disable -q "$unit" 2>/dev/null || true
    done
}

# need_node: for the tests of clients/node. What they need of npm is in build/node. A Node from elsewhere than Debian has an
# npm of its own.
need_node() {
    programs=
    command -v node >/dev/null || programs=nodejs
    command -v npm >/dev/null || programs="$programs npm"
    # shellcheck disable=SC2086
    if [ -z "$programs" ] || (need $programs); then node_modules && return; fi
    say "do: without Node and its packages the tests of clients/node are skipped"
}

# node_modules: once, and again where it is to be something else.
node_modules() {
    needs_folder build/node
    ! cmp -s clients/node/package.json build/node/installed || return 0
    cp clients/node/package.json build/node/ &&
        npm install --no-audit --no-fund --no-package-lock --prefix build/node >build/node/log 2>&1 &&
        cp build/node/package.json build/node/installed
}

# ---- Building ----------------------------------------------------------------------------------

# build PRESET: one at a time in a folder, or one would read what the other is just writing.
build() {
    case $1 in
    release) more= ;;
    deb) more="scdoc dpkg-dev file" ;;
    clang) more="libcmocka-dev libjansson-dev libmsgpack-dev clang g++" ;;
    fuzz) more="clang librabbitmq-dev libssl-dev libmsgpack-dev" ;;
    *) more="libcmocka-dev libjansson-dev libmsgpack-dev g++" ;;
    esac
    needs_folder "build/$1"
    # shellcheck disable=SC2086
    need $build_packages $more
    needs_folder "build/$1/log"
    exec 9>"build/$1/lock"
    ! command -v flock >/dev/null || flock 9
    cmake --preset "$1" >"build/$1/log/configure" 2>&1 ||
        { cat "build/$1/log/configure" >&2; fail "can't configure $1"; }
    cmake --build --preset "$1" >"build/$1/log/build" 2>&1 ||
        { cat "build/$1/log/build" >&2; fail "can't build $1"; }
    exec 9>&-
}

# ---- Tests -------------------------------------------------------------------------------------

# report NAME PASSED FAILED LOG: notes the counts, and shows what failed, whole among those of
# others that run beside it.
report() {
    echo "$2 $3" >>"build/$preset/log/counts"
    shown=$(
        if [ "$3" = 0 ]; then
            printf '%6d passed  %s\n' "$2" "$1"
        else
            printf '%6d passed  %s: %d FAILED\n' "$2" "$1" "$3"
            grep -av '^ok ' "$4" | tail -n 200
        fi
    )
    printf '%s\n' "$shown"
}

# total: the closing line of all that was reported. Before it stands what was skipped since this machine lacks what it
# needs.
total() {
    if [ -s "build/$preset/log/missing" ]; then
        sort "build/$preset/log/missing" | uniq -c | sed 's/^ *\([0-9]*\) /\1 SKIPPED: /'
    fi
    awk '{ good += $1; bad += $2 } END { printf "%d passed, %d failed\n", good, bad; exit bad > 0 }' \
        "build/$preset/log/counts"
}

log_of() { echo "build/$preset/log/$(echo "$1" | tr ' /' '-.')"; }

# check NAME COMMAND...: one test, which passes where the command ends in 0.
check() {
    name=$1 log=$(log_of "$1")
    shift
    if "$@" >"$log" 2>&1 </dev/null; then report "$name" 1 0 "$log"; else report "$name" 0 1 "$log"; fi
}

# tap NAME COMMAND...: tests that speak TAP. Those that a crash or an early exit swallowed are
# missed by the plan or by the exit code, and count as one more that failed. A file is ended after
# MULL_LIMIT (600) seconds.
tap() {
    name=$1 log=$(log_of "$1") status=0
    shift
    timeout -k 10 "${MULL_LIMIT-600}" "$@" >"$log" 2>&1 </dev/null || status=$?
    skipped=$(grep -ac '^ok .*# SKIP' "$log") || true
    good=$(($(grep -ac '^ok ' "$log" || true) - skipped))
    bad=$(grep -ac '^not ok ' "$log") || true
    plan=$(sed -n 's/^1\.\.0*\([0-9][0-9]*\)$/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    if [ "$plan" != $((good + bad + skipped)) ] || [ "$plan" = 0 ] ||
        { [ "$status" != 0 ] && [ "$bad" = 0 ]; }; then
        echo "# ended in $status; $plan tests planned, $((good + bad + skipped)) done" >>"$log"
        bad=$((bad + 1))
    fi
    [ "$skipped" = 0 ] || name="$name ($skipped skipped)"
    sed -n "s/^ok .*# SKIP .*: \(.* isn't installed.*\)/\1/p" "$log" >>"build/$preset/log/missing"
    report "$name" "$good" "$bad" "$log"
}

# c_test FILE: those of a module aren't built where its libraries are missing.
c_test() {
    case $1 in
    spec/unit/net/* | spec/unit/transport/amqp_*)
        [ -x "build/$preset/${1%.c}" ] || {
            echo "librabbitmq or OpenSSL isn't installed" >>"build/$preset/log/missing"
            return 0
        }
        ;;
    spec/unit/handler/fetch.c)
        [ -x "build/$preset/${1%.c}" ] || {
            echo "libcurl isn't installed" >>"build/$preset/log/missing"
            return 0
        }
        ;;
    esac
    tap "$1" env CMOCKA_MESSAGE_OUTPUT=TAP "build/$preset/${1%.c}"
}

# spec FILE: a sanitized module needs an interpreter that is sanitized as well. It is slow, so the
# property test tries fewer policies there.
spec() {
    case $preset in
    asan | tsan)
        tap "$1" env MULL_PAIRS="${MULL_PAIRS-2000}" \
            "build/$preset/spec/runner" "$(command -v busted)" --ignore-lua -o TAP "$1"
        ;;
    *) tap "$1" busted -o TAP "$1" ;;
    esac
}

checks() {
    check "layers" lua5.4 tools/layers.lua
    check "lengths" lua5.4 tools/lengths.lua
    check "api" lua5.4 tools/api.lua
    # shellcheck disable=SC2046
    check "clang-format" clang-format --dry-run -Werror $(find include src spec examples bench -name '*.[ch]' -o -name '*.cpp')
    check "luacheck" luacheck -q .
}

# longest are the files that take longest or wait most: they begin first, so that the others run
# beside them and none is waited for alone at the end.
longest='^spec/(cli/(amqp_storm|large|held|memory_limit|run|log|send|rows)_spec|simulate/(amqp/)?bugs_spec|transport/amqp_spec|house/rock_spec|install/(debian|examples)_spec|embed/(decider_storm|memory|reloads|reloads_engine|sqlite_power_cut))\.'

# threaded are those that have threads: a thread of their own, or one of sqlite:, the log's or the
# watchdog's that does more than it does everywhere.
threaded='^spec/(cli/(broken|death|exit|faults|full_disk|held|log|reload|rows|run|send|several|storm|waiting)_spec\.'
threaded="$threaded|embed/(conformance|forks|guest|ids|one_generation|own_board|seam|until_empty|[a-z]*_storm|engine|engine_done)\."
threaded="$threaded|embed/(sqlite_[a-z_]*|reloads?|reloads_engine|misuse_(policy|threads))\.|examples/(orders|own_[a-z]*|threads)_spec\."
threaded="$threaded|lua/(admission|clock|ends|life)_spec\.|transport/(modules|sqlite|sqlite_open)_spec\."
threaded="$threaded|unit/(decide/threads|lua/(ends|stderr_queue)|net/attempts|runtime/(notify|watchdog)|transport/sqlite(_memory)?)\.)"

# all_tests: what is installed is tested once, without sanitizers, which programs that link it
# would need as well, and so is the tree itself. ThreadSanitizer is for what has threads.
all_tests() {
    case $preset in
    asan) chosen='^spec/(cli|clients|docs|embed|examples|limits|lua|policy|simulate|transport|unit)/' ;;
    tsan) chosen=$threaded ;;
    *) chosen='^' ;;
    esac
    find spec \( -name '*_spec.lua' -o -path 'spec/embed/*.c' -o -path 'spec/unit/*.c' \) |
        grep -E "$chosen" | sort >"build/$preset/log/tests"
    grep -E "$longest" "build/$preset/log/tests"
    grep -Ev "$longest" "build/$preset/log/tests"
}

use_preset() {
    preset=$1
    MULL_BUILD=$PWD/build/$preset
    MULLIGAN=$MULL_BUILD/mulligan
    export MULL_BUILD MULLIGAN
}

# run_one PRESET FILE: one of those that run side by side.
run_one() {
    use_preset "$1"
    case $2 in
    *.c) c_test "$2" ;;
    *) spec "$2" ;;
    esac
}

# run_tests PRESET [FILE...]: as many files at a time as there are cores and one more, since some
# wait; or MULL_JOBS.
run_tests() {
    use_preset "$1"
    shift
    needs_folder "build/$preset"
    # shellcheck disable=SC2086
    need $build_packages $test_packages $install_packages
    need_rabbitmq
    need_node
    build "$preset"
    : >"build/$preset/log/counts"
    : >"build/$preset/log/missing"
    if [ $# = 0 ]; then
        [ "$preset" != dev ] || checks
        # shellcheck disable=SC2046
        set -- $(all_tests)
    fi
    printf '%s\n' "$@" | xargs -P "${MULL_JOBS-$(($(nproc) + 1))}" -n 1 ./do run_one "$preset" ||
        echo "0 1" >>"build/$preset/log/counts" # one ended before it could report
    total
}

# fuzz_one TARGET: what a target finds new goes to build/fuzz/found, and what it trips over to
# build/fuzz/log; the corpora stay as they are.
fuzz_one() {
    use_preset fuzz
    mkdir -p "build/fuzz/found/$1"
    check "fuzz $1" "build/fuzz/fuzz/$1" -max_total_time="${MULL_FUZZ_SECONDS-15}" \
        -timeout=60 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/log/$1-" \
        "build/fuzz/found/$1" "spec/fuzz/corpus/$1"
}

# fuzz [TARGET...]: as many at a time as there are cores, since each keeps one busy.
fuzz() {
    preset=fuzz
    build "$preset"
    : >"build/$preset/log/counts"
    [ $# != 0 ] || set -- amqp decide duration frames pattern policy url
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 ./do fuzz_one ||
        echo "0 1" >>"build/$preset/log/counts" # one ended before it could report
    total
}

# conformance [--write]: the specs of all transports, one after the other, and the table of what came out.
conformance() {
    use_preset dev
    # shellcheck disable=SC2086
    need $build_packages $test_packages
    need_rabbitmq
    build dev
    mkdir -p "build/dev/log/conformance"
    logs=
    # shellcheck disable=SC2013
    for file in $(grep -l 'require "transport.conformance"' spec/transport/*_spec.lua); do
        log="build/dev/log/conformance/$(basename "$file" _spec.lua)"
        busted -o TAP "$file" >"$log" 2>"$log.err" </dev/null || true # the table says which failed
        logs="$logs $log"
    done
    # shellcheck disable=SC2086
    LUA_PATH="spec/?.lua;;" lua5.4 tools/conformance.lua "$@" $logs
}

# ---- Commands ----------------------------------------------------------------------------------

usage() { sed -n '5,11s/^# *//p' "$0"; }

command=${1-}
[ $# = 0 ] || shift
case $command in
demo)
    build release
    exec examples/orders/run.sh "$PWD/build/release/mulligan"
    ;;
test)
    case ${1-} in
    dev | clang | asan | tsan) run_tests "$@" ;;
    fuzz)
        shift
        fuzz "$@"
        ;;
    *) run_tests dev "$@" ;;
    esac
    ;;
conformance) conformance "$@" ;;
build) build "${1-dev}" ;;
run_one) run_one "$@" ;;
fuzz_one) fuzz_one "$@" ;;
-h | --help | help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
