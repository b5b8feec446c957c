//! The programs that run another command after their own options, as data.

use super::{Runs, Wrapper};
use windlass_core::policy::class::Class;

const fn plain(names: &'static [&'static str], values: &'static str, skip: usize) -> Wrapper {
    let (class, reason) = (Class::Read, "runs another command, judged separately");
    Wrapper { names, values, texts: "", runs: Runs::Words(skip), class, reason }
}

const fn after(
    names: &'static [&'static str],
    subcommand: &'static str,
    values: &'static str,
    skip: usize,
    class: Class,
    reason: &'static str,
) -> Wrapper {
    Wrapper { names, values, texts: "", runs: Runs::After(subcommand, skip), class, reason }
}

const fn privileged(names: &'static [&'static str], values: &'static str, skip: usize) -> Wrapper {
    let (class, reason) = (Class::Catastrophic, "asks for more privileges");
    Wrapper { names, values, texts: "-c|--command", runs: Runs::Words(skip), class, reason }
}

const DOCKER_VALUES: &str = "-e --env --env-file -u --user -w --workdir -v --volume -p --publish --name \
    --network --mount --entrypoint -l --label --cpus -m --memory --platform -h --hostname --add-host \
    --device --cap-add --cap-drop --security-opt --ulimit --restart --pull --gpus --ipc --pid --tmpfs \
    -H --host --context -c --config -f --file --project-name --profile --index --detach-keys";

pub(super) const WRAPPERS: &[Wrapper] = &[
    plain(&["env", "genv"], "-u --unset -C --chdir -S --split-string --block-signal -a --argv0", 0),
    plain(
        &["nohup", "setsid", "unbuffer", "eatmydata", "fakeroot", "caffeinate", "catchsegv"],
        "",
        0,
    ),
    plain(&["command", "builtin", "nocorrect", "noglob", "exec", "coproc"], "-a", 0),
    plain(&["time", "gtime"], "-o --output -f --format", 0),
    plain(&["nice", "gnice"], "-n --adjustment", 0),
    plain(&["ionice"], "-c --class -n --classdata", 0),
    plain(&["timeout", "gtimeout"], "-s --signal -k --kill-after", 1),
    plain(&["stdbuf", "gstdbuf"], "-i --input -o --output -e --error", 0),
    plain(&["chrt", "taskset", "setarch", "numactl"], "", 1),
    plain(&["prlimit", "choom", "uclampset"], "-n", 0),
    plain(&["torsocks", "proxychains", "proxychains4", "tsocks", "torify"], "-f", 0),
    plain(&["strace", "ltrace", "valgrind", "rr", "heaptrack"], "-e -o -s -p -u -a -E -P -S", 0),
    plain(&["busybox", "toybox"], "", 0),
    plain(&["cross-env", "dotenv", "doppler", "with-env"], "-f --file -e", 0),
    plain(
        &["ts-node-dev", "rtk", "proot", "firejail", "bwrap", "winpty", "arch", "entr"],
        "-S -b -w",
        0,
    ),
    plain(
        &["daemonize", "start-stop-daemon", "dbus-run-session", "xvfb-run"],
        "-p -u --unit -c -e -o -l -E",
        0,
    ),
    Wrapper {
        names: &["watch"],
        values: "-n --interval",
        texts: "",
        runs: Runs::Text(0),
        class: Class::Read,
        reason: "repeats another command, judged separately",
    },
    Wrapper {
        names: &["script"],
        values: "-c --command -T -B -I -O -E -m -o",
        texts: "-c|--command",
        runs: Runs::Words(usize::MAX),
        class: Class::LocalCommand,
        reason: "records a terminal session",
    },
    Wrapper {
        names: &["flock"],
        values: "-w --timeout -E -c --command",
        texts: "-c|--command",
        runs: Runs::Words(1),
        class: Class::Read,
        reason: "runs another command, judged separately",
    },
    Wrapper {
        names: &["hyperfine", "concurrently", "npm-run-all", "run-p", "run-s"],
        values: "-w --warmup -r --runs -p --prepare -n --names -c --cleanup -s --setup",
        texts: "-p|--prepare|-c|--cleanup|-s|--setup",
        runs: Runs::Text(0),
        class: Class::LocalCommand,
        reason: "runs commands",
    },
    Wrapper {
        names: &["nodemon", "watchexec"],
        values: "-x --exec -w --watch -e --ext",
        texts: "-x|--exec",
        runs: Runs::Words(0),
        class: Class::LocalCommand,
        reason: "runs a command at every change",
    },
    Wrapper {
        names: &["nix-shell"],
        values: "-p --run --command -A",
        texts: "--run|--command",
        runs: Runs::Words(usize::MAX),
        class: Class::Build,
        reason: "fetches packages",
    },
    Wrapper {
        names: &["tmux", "screen", "byobu"],
        values: "-S -L -t -s -n -c",
        texts: "",
        runs: Runs::Text(0),
        class: Class::LocalCommand,
        reason: "starts a terminal session",
    },
    privileged(
        &[
            "sudo",
            "doas",
            "gosu",
            "pkexec",
            "sudo-rs",
            "run0",
            "please",
            "dzdo",
            "sudoedit",
            "su-exec",
            "s6-setuidgid",
            "chpst",
            "super",
            "calife",
            "ksu",
            "gksu",
            "gksudo",
            "kdesu",
            "kdesudo",
            "lxqt-sudo",
            "beesu",
            "sux",
            "pfexec",
            "rootsh",
            "setuidgid",
            "capsudo",
            "lsu",
        ],
        "-u --user -g --group -p --prompt -h --host -C --close-from -r --role -t --type -D --chdir -T",
        0,
    ),
    privileged(&["su", "runuser", "sg"], "-c --command -s --shell -g -G -w", usize::MAX),
    privileged(
        &[
            "chroot",
            "nsenter",
            "unshare",
            "setpriv",
            "capsh",
            "newuidmap",
            "newgidmap",
            "pivot_root",
        ],
        "-u -t -r -S -G --reuid --regid --groups --inh-caps --ambient-caps --securebits",
        0,
    ),
    after(
        &["docker", "podman", "nerdctl"],
        "exec",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["docker", "podman", "nerdctl"],
        "run|create",
        DOCKER_VALUES,
        1,
        Class::Build,
        "starts a container",
    ),
    after(
        &["docker", "podman"],
        "compose exec|compose run",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["docker-compose"],
        "exec|run",
        DOCKER_VALUES,
        1,
        Class::LocalCommand,
        "runs a command in a container",
    ),
    after(
        &["kubectl", "oc", "k"],
        "exec",
        "-n --namespace -c --container --context --kubeconfig",
        1,
        Class::Production,
        "runs a command in a cluster",
    ),
    after(
        &["poetry", "pipenv", "pdm", "rye", "hatch", "uv", "pixi", "conda", "mamba"],
        "run",
        "--with --python -p --extra --group --env-file -n -e -m --directory -C",
        0,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(
        &[
            "bundle", "mise", "rtx", "asdf", "opam", "stack", "cabal", "pyenv", "rbenv", "volta",
            "fnm", "mix",
        ],
        "exec|x|run",
        "",
        0,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(
        &["direnv"],
        "exec",
        "",
        1,
        Class::LocalCommand,
        "runs a command of the project's environment",
    ),
    after(&["rustup"], "run", "", 1, Class::LocalCommand, "runs a command of a toolchain"),
    after(
        &["npm", "pnpm", "yarn"],
        "exec|x|dlx",
        "-p --package -c --call -w --workspace",
        0,
        Class::Build,
        "runs a package's program, fetching it when missing",
    ),
    after(&["perf"], "stat|record|trace", "-e -o -p", 0, Class::LocalCommand, "measures a command"),
    after(&["git"], "bisect run", "-C -c", 0, Class::LocalCommand, "runs a command at every step"),
    after(&["nix"], "develop|shell", "-c --command", 0, Class::Build, "fetches packages"),
    after(
        &["aws-vault", "chamber", "op", "infisical", "sops"],
        "exec|run|exec-env",
        "",
        1,
        Class::Publish,
        "runs a command with secrets",
    ),
];
