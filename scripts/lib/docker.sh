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
    docker_home="$(mktemp -d "${TMPDIR:-/tmp}/windlass-docker-XXXXXX")"
    chmod 755 "$docker_home"
    # The machine's firewall and forwarding stay unchanged; containers reach only their bridge.
    dockerd --host "unix://$docker_home/docker.sock" --group "$(id -gn)" --data-root "$docker_home/data" \
        --exec-root "$docker_home/exec" --pidfile "$docker_home/pid" \
        --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
        >"$docker_home/log" 2>&1 &
    docker_pid=$!
    trap stop_private_docker EXIT
    trap 'exit 130' INT TERM
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

# Stops only the processes that this script started, by pid.
stop_private_docker() {
    kill "$docker_pid" 2>/dev/null || return 0
    wait "$docker_pid" 2>/dev/null || true
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
