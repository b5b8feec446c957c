# Installs what some tests need besides Rust, once, into a cache outside the repository. Sourced by
# scripts/test; each function exports the variable by which tests find the program.

needs_cache="${XDG_CACHE_HOME:-$HOME/.cache}/windlass-tests"

# Installs a Debian package if its program is missing and we have the rights.
need_program() {
    local program="$1" package="$2"
    command -v "$program" >/dev/null 2>&1 && return
    echo "installing $package for $program"
    apt-get update -qq && apt-get install -y -qq "$package" >/dev/null
}

# Makes a private Python environment with pinned packages.
need_python_package() {
    local name="$1"
    shift
    local requirement="$*"
    local home="$needs_cache/$name"
    if [ "$(cat "$home/installed" 2>/dev/null)" != "$requirement" ]; then
        need_program python3 python3
        python3 -c 'import ensurepip' 2>/dev/null || need_program no-such-program python3-venv
        echo "installing $requirement"
        rm -rf "$home"
        python3 -m venv "$home"
        "$home/bin/pip" install -q --disable-pip-version-check "$@"
        printf '%s' "$requirement" >"$home/installed"
    fi
}

# Installs one npm package with a pinned version into a directory of its own.
need_npm_package() {
    local package="$1" home="$2"
    [ "$(cat "$home/installed" 2>/dev/null)" = "$package" ] && return
    need_program node nodejs
    need_program npm npm
    echo "installing $package"
    rm -rf "$home"
    mkdir -p "$home"
    npm install --silent --no-audit --no-fund --prefix "$home" "$package"
    printf '%s' "$package" >"$home/installed"
}

# The LiteLLM proxy, between windlass and the scripted model.
need_litellm() {
    need_python_package litellm 'litellm[proxy]==1.106.2'
    export WINDLASS_TEST_LITELLM="$needs_cache/litellm/bin/litellm"
}

# The official SDKs of OpenAI and Anthropic, as clients of the model's test server.
need_sdks() {
    need_python_package sdks 'openai==2.54.0' 'anthropic==2.8.0'
    export WINDLASS_TEST_SDKS="$needs_cache/sdks/bin/python"
}

# A real terminal multiplexer around the interactive terminal.
need_tmux() {
    need_program tmux tmux
}

# GNU screen, another one, which keeps nothing of what a page covers.
need_screen() {
    need_program screen screen
}

# What the projects of the scripted working day are made with: Debian's own Python with pytest, and npm.
need_projects() {
    need_program git git
    /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || need_program no-such-program python3-venv
    /usr/bin/python3 -c 'import pytest' 2>/dev/null || need_program no-such-program python3-pytest
    need_program node nodejs
    need_program npm npm
}
