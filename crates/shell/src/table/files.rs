//! Changing files: the coreutils that write, move, remove and edit, and what stands beside them.

use super::{Files, Program, all, risky, row};
use crate::invocation::Style;
use windlass_core::policy::class::{Class, Risk};

/// Needs more than a glance at operands: what it writes is in `outputs` or checked in code.
const MEDIUM_EDIT: Risk = Risk::Medium;

pub(super) const PROGRAMS: &[Program] = &[
    all(
        &[
            "mkdir", "touch", "mkfifo", "tee", "sponge", "mktemp", "split", "csplit", "patch",
            "dos2unix", "unix2dos",
        ],
        Files::Writes,
        &[risky(
            "",
            Class::Edit,
            MEDIUM_EDIT,
            "changes files in the workspace",
            &["mkdir -p src/a", "touch a.txt", "echo x | tee out.txt", "patch -p1 < a.diff"],
            &[
                "mkdir /etc/x",
                "touch ~/.bashrc",
                "echo x | tee /etc/hosts",
                "tee .git/hooks/pre-commit",
            ],
        )],
    ),
    Program {
        names: &["cp", "ln", "install", "gcp", "rename", "prename", "ditto"],
        values: "-t --target-directory -S --suffix -m --mode -o --owner -g --group",
        outputs: "-t --target-directory",
        style: Style::Bundled,
        files: Files::WritesLast,
        rows: &[risky(
            "",
            Class::Edit,
            MEDIUM_EDIT,
            "changes files in the workspace",
            &["cp a b", "ln -s a b", "cp -r src dst", "cp /etc/hosts ./hosts"],
            &["cp a /etc/b", "cp -t /usr/bin a", "cp x .git/hooks/pre-push"],
        )],
    },
    Program {
        names: &["mv", "gmv"],
        values: "-t --target-directory -S --suffix",
        outputs: "-t --target-directory",
        style: Style::Bundled,
        files: Files::Moves,
        rows: &[risky(
            "",
            Class::Edit,
            MEDIUM_EDIT,
            "changes files in the workspace",
            &["mv a b", "mv -v src/a src/b"],
            &["mv a /tmp/b", "mv /etc/hosts .", "mv x ~/.bashrc"],
        )],
    },
    Program {
        names: &[
            "rm",
            "grm",
            "unlink",
            "rmdir",
            "trash",
            "trash-put",
            "rimraf",
            "del-cli",
            "shred",
            "srm",
            "wipe",
            "truncate",
        ],
        values: "-s --size -n --iterations",
        outputs: "",
        style: Style::Bundled,
        files: Files::Removes,
        rows: &[
            row(
                "",
                Class::Destructive,
                "removes files",
                &[
                    "rm a.txt",
                    "rm -r build",
                    "rm -f a",
                    "unlink a",
                    "shred -u key",
                    "rmdir empty",
                    "truncate -s 0 log",
                ],
                &[
                    "git rm --cached a",
                    "cargo rm serde",
                    "echo rm a",
                    "npm rm lodash",
                    "docker run --rm alpine",
                ],
            ),
            row(
                "-r|-R|--recursive -f|--force",
                Class::Catastrophic,
                "removes whole directories without asking",
                &[
                    "rm -rf build",
                    "rm -fr x",
                    "rm -r -f x",
                    "rm --recursive --force x",
                    "rm x -Rf",
                    "/bin/rm --rec --for x",
                    "rm -vrf x",
                ],
                &["rm -r build", "rm -f a", "rm -- -rf", "echo rm -rf /"],
            ),
        ],
    },
    Program {
        names: &[
            "chmod", "chown", "chgrp", "chattr", "setfacl", "setcap", "chcon", "chflags", "xattr",
        ],
        values: "--reference",
        outputs: "",
        style: Style::Bundled,
        files: Files::None,
        rows: &[row(
            "",
            Class::Destructive,
            "changes who may do what with files",
            &["chmod +x run.sh", "chown user a", "chmod -R 755 src", "chgrp staff a"],
            &["ls -l", "stat -c %a a", "echo chmod"],
        )],
    },
    Program {
        names: &["dd", "gdd", "dcfldd"],
        values: "",
        outputs: "",
        style: Style::Bundled,
        files: Files::None,
        rows: &[row(
            "",
            Class::LocalCommand,
            "copies bytes",
            &["dd if=a bs=1 count=4", "dd if=/dev/zero of=a count=1"],
            &["dd if=a of=/dev/sda", "dd if=/dev/zero of=/etc/x"],
        )],
    },
    Program {
        names: &["sed", "gsed"],
        values: "-e --expression -f --file -l --line-length",
        outputs: "",
        style: Style::Bundled,
        files: Files::None,
        rows: &[
            row(
                "",
                Class::Read,
                "filters text",
                &["sed -n 1,5p a", "sed 's/rm/x/' a", "sed -e 's/a/b/w' -e p"],
                &["sed -i s/a/b/ f", "sed '1e rm x' f", "sed 'w /etc/x' f"],
            ),
            risky(
                "-i|--in-place",
                Class::Edit,
                MEDIUM_EDIT,
                "changes files in place",
                &[
                    "sed -i 's/a/b/' src/x.rs",
                    "sed -i.bak -e s/a/b/ x",
                    "sed --in-place=.o s/a/b/ x",
                ],
                &["sed -i s/a/b/ /etc/hosts", "sed -n p a"],
            ),
        ],
    },
    Program {
        names: &["xxd"],
        values: "-l -s -c -g",
        outputs: "",
        style: Style::Bundled,
        files: Files::Reads,
        rows: &[
            row("", Class::Read, "shows bytes", &["xxd -l 16 a"], &["xxd -r a b"]),
            risky(
                "-r",
                Class::Edit,
                MEDIUM_EDIT,
                "writes bytes",
                &["xxd -r a.hex a.bin"],
                &["xxd a"],
            ),
        ],
    },
    Program {
        names: &["yq"],
        values: "",
        outputs: "",
        style: Style::Bundled,
        files: Files::Reads,
        rows: &[
            row("", Class::Read, "queries text", &["yq .a x.yaml"], &["yq -i .a=1 x.yaml"]),
            risky(
                "-i|--inplace",
                Class::Edit,
                MEDIUM_EDIT,
                "changes files in place",
                &["yq -i '.a = 1' x.yaml"],
                &["yq .a x.yaml"],
            ),
        ],
    },
];
