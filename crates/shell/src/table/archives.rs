//! Packing and unpacking.

use super::{Files, Program, risky, row};
use crate::invocation::Style;
use windlass_core::policy::class::{Class, Risk};

/// Unpacking can replace files nobody has looked at.
const MEDIUM_EDIT: Risk = Risk::Medium;

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["tar", "gtar", "bsdtar"],
        values: "-f --file -C --directory -I --use-compress-program --to-command --checkpoint-action -T -X --exclude -F --info-script --new-volume-script --rsh-command --rmt-command",
        outputs: "-C --directory",
        style: Style::Bundled,
        files: Files::None,
        rows: &[
            risky(
                "",
                Class::Edit,
                MEDIUM_EDIT,
                "packs or unpacks files",
                &["tar -czf out.tar.gz src", "tar xzf a.tgz", "tar -xf a.tar -C build"],
                &["tar -xf a -C /etc", "tar -tf a.tar"],
            ),
            row(
                "-t|--list",
                Class::Read,
                "lists an archive",
                &["tar -tzf a.tgz", "tar --list -f a"],
                &["tar -xzftest a", "tar cf t a"],
            ),
            row(
                "--to-command|--checkpoint-action|-I|--use-compress-program|-F|--info-script|--new-volume-script|--rsh-command|--rmt-command",
                Class::Opaque,
                "runs the program it is told to",
                &[
                    "tar xf a --to-command=sh",
                    "tar cf a.tar --checkpoint=1 --checkpoint-action=exec=sh x",
                    "tar -I ./x -xf a",
                ],
                &["tar -xf a"],
            ),
            row(
                "--remove-files",
                Class::Destructive,
                "removes what it packs",
                &["tar -cf a.tar --remove-files src"],
                &["tar -cf a.tar src"],
            ),
        ],
    },
    Program {
        names: &["unzip", "7z", "7za", "unrar", "cpio", "ar"],
        values: "-d -o -O",
        outputs: "-d -o",
        style: Style::Bundled,
        files: Files::None,
        rows: &[
            risky(
                "",
                Class::Edit,
                MEDIUM_EDIT,
                "unpacks files",
                &["unzip a.zip -d out", "7z x a.7z"],
                &["unzip a.zip -d /etc", "unzip -l a.zip"],
            ),
            row(
                "-l|-t|-Z|-p",
                Class::Read,
                "looks into an archive",
                &["unzip -l a.zip", "unzip -p a.zip b"],
                &["unzip a.zip"],
            ),
        ],
    },
    Program {
        names: &[
            "zip",
            "gzip",
            "gunzip",
            "bzip2",
            "bunzip2",
            "xz",
            "unxz",
            "zstd",
            "unzstd",
            "lz4",
            "pigz",
            "compress",
            "uncompress",
        ],
        values: "-TT --unzip-command",
        outputs: "",
        style: Style::Bundled,
        files: Files::None,
        rows: &[
            risky(
                "",
                Class::Edit,
                MEDIUM_EDIT,
                "packs or unpacks files",
                &["gzip a", "zip -r a.zip src", "gunzip a.gz"],
                &["gzip /etc/hosts", "zip a.zip a --unzip-command 'sh x'"],
            ),
            row(
                "-c|--stdout|--to-stdout|-l|--list|-t|--test",
                Class::Read,
                "looks into an archive",
                &["gzip -dc a.gz", "xz -l a.xz", "gunzip -c a.gz"],
                &["gunzip a.gz"],
            ),
            row(
                "--unzip-command",
                Class::Opaque,
                "runs the program it is told to",
                &["zip a.zip b -T --unzip-command 'sh -c x'"],
                &["zip -T a.zip"],
            ),
        ],
    },
    Program {
        names: &["gzcat", "zstdcat", "lzcat", "lz4cat"],
        values: "",
        outputs: "",
        style: Style::Bundled,
        files: Files::Reads,
        rows: &[row("", Class::Read, "looks into an archive", &["zstdcat a.zst"], &["zstd a"])],
    },
];
