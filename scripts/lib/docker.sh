# A container engine and a small image, for the tests of the docker sandbox. Sourced after needs.sh, whose
# cache and `need_program` it uses.

# The packages of the test image besides Debian's essential ones. After a change the image is built again.
docker_image_packages="git,ripgrep,python3-minimal,libpython3-stdlib,curl,ca-certificates,procps"

# Provides a container engine: the caller's own, or else a private one that ends with this script.
need_docker() {
    need_program docker docker.io
    if ! docker_answers; then
        start_private_docker
    fi
    need_docker_image
    # Tests that need an engine fail without this; they are never left out.
    export WINDLASS_TEST_DOCKER="${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}"
}

docker_answers() {
    timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# It has its own directories and socket, so it leaves nothing and does not disturb an engine that starts later.
start_private_docker() {
    if [ "$(id -u)" != 0 ]; then
        echo "no container engine answers, and only root can start one: start docker, or set DOCKER_HOST" >&2
        return 1
    fi
    need_program dockerd docker.io
    need_program ip iproute2
    docker_home="$(mktemp -d "${TMPDIR:-/tmp}/windlass-docker-XXXXXX")"
    chmod 755 "$docker_home"
    trap stop_private_docker EXIT
    trap 'exit 130' INT TERM
    make_private_bridge
    # The machine's firewall and forwarding stay unchanged; containers reach only their bridge.
    dockerd --host "unix://$docker_home/docker.sock" --group "$(id -gn)" --data-root "$docker_home/data" \
        --exec-root "$docker_home/exec" --pidfile "$docker_home/pid" \
        --bridge "$docker_bridge" --default-address-pool "base=$docker_range.128/25,size=28" \
        --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
        >"$docker_home/log" 2>&1 &
    docker_pid=$!
    export DOCKER_HOST="unix://$docker_home/docker.sock"
    local tries
    for tries in $(seq 300); do
        if [ -S "$docker_home/docker.sock" ] && docker_answers; then
            # Some tests run as an ordinary user who may talk to the engine.
            chmod 666 "$docker_home/docker.sock"
            return
        fi
        kill -0 "$docker_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "dockerd did not start:" >&2
    tail -20 "$docker_home/log" >&2
    return 1
}

# A bridge and a range of addresses that no other engine has: two engines on `docker0` take each other's containers
# off the network.
make_private_bridge() {
    local try
    for try in $(seq 50); do
        docker_bridge="windlass$(((RANDOM * 32768 + RANDOM) % 1000000))"
        docker_range="10.$((192 + RANDOM % 60)).$((RANDOM % 256))"
        if [ -n "$(ip -4 route list match "$docker_range.1" | grep -v '^default')" ]; then
            continue
        fi
        if ip link add name "$docker_bridge" type bridge 2>/dev/null; then
            ip address add "$docker_range.1/25" dev "$docker_bridge"
            ip link set "$docker_bridge" up
            return
        fi
    done
    docker_bridge=
    echo "no bridge of its own can be made for a private container engine" >&2
    return 1
}

# Stops only the processes that this script started, by pid.
stop_private_docker() {
    if [ -n "${docker_pid:-}" ] && kill "$docker_pid" 2>/dev/null; then
        wait "$docker_pid" 2>/dev/null || true
    fi
    [ -z "${docker_bridge:-}" ] || ip link delete "$docker_bridge" 2>/dev/null || true
    rm -rf "$docker_home"
}

# Builds the image from Debian's packages, so no registry is needed. Built once, imported into each private engine.
need_docker_image() {
    local suite packed stamp
    suite="$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")"
    stamp="1 $suite $docker_image_packages"
    packed="$needs_cache/docker-image.tar"
    export WINDLASS_TEST_IMAGE="windlass-test:$(printf '%s' "$stamp" | cksum | cut -d' ' -f1)"
    docker image inspect "$WINDLASS_TEST_IMAGE" >/dev/null 2>&1 && return
    if [ "$(cat "$packed.made" 2>/dev/null)" != "$stamp" ]; then
        make_docker_image "$suite" "$packed"
        printf '%s' "$stamp" >"$packed.made"
    fi
    docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' --change 'ENV IMAGE_SAYS=hello' \
        --change 'CMD ["bash"]' "$packed" "$WINDLASS_TEST_IMAGE" >/dev/null
}

make_docker_image() {
    local suite="$1" packed="$2" root mirror
    if [ "$(id -u)" != 0 ]; then
        echo "the test image is made once by root, for its packages have owners: run scripts/test as root," >&2
        echo "or copy $packed and $packed.made from where that was done" >&2
        return 1
    fi
    echo "making the test image"
    need_program debootstrap debootstrap
    mkdir -p "$needs_cache"
    root="$(mktemp -d "$needs_cache/image-XXXXXX")"
    mirror="$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null |
        awk -v suite="$suite" '$2 == suite { print $1; exit }')"
    debootstrap --variant=minbase --include="$docker_image_packages" "$suite" "$root" "$mirror" >"$packed.log" 2>&1 ||
        { tail -20 "$packed.log" >&2; rm -rf "$root"; return 1; }
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
    # A user that only the image knows, and a file only its root may read.
    echo secret-of-the-image >"$root/etc/only-root"
    chmod 600 "$root/etc/only-root"
    tar -C "$root" --one-file-system -cf "$packed" .
    rm -rf "$root"
}
