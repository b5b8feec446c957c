//! The style sheet, the scripts and the icon: parts of the program, served under a name that changes with them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file that pages are made of.
pub struct Asset {
    pub name: &'static str,
    pub media: &'static str,
    pub text: &'static str,
}

/// Every file that pages are made of.
pub const ASSETS: &[Asset] = &[
    Asset {
        name: "style.css",
        media: "text/css; charset=utf-8",
        text: include_str!("assets/style.css"),
    },
    Asset {
        name: "app.js",
        media: "text/javascript; charset=utf-8",
        text: include_str!("assets/app.js"),
    },
    Asset {
        name: "composer.js",
        media: "text/javascript; charset=utf-8",
        text: include_str!("assets/composer.js"),
    },
    Asset {
        name: "keys.js",
        media: "text/javascript; charset=utf-8",
        text: include_str!("assets/keys.js"),
    },
    Asset {
        name: "review.js",
        media: "text/javascript; charset=utf-8",
        text: include_str!("assets/review.js"),
    },
    Asset { name: "icon.svg", media: "image/svg+xml", text: include_str!("assets/icon.svg") },
];

/// The files as they are sent to browsers, packed once.
static PACKED: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let pack = |asset: &Asset| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail.
        let _ = packer.write_all(asset.text.as_bytes());
        Bytes::from(packer.finish().unwrap_or_default())
    };
    ASSETS.iter().map(pack).collect()
});

/// A file as gzip.
pub fn packed(asset: &Asset) -> Bytes {
    let at = ASSETS.iter().position(|one| one.name == asset.name);
    at.map(|at| PACKED[at].clone()).unwrap_or_default()
}

/// Whether a client takes gzip, by its `Accept-Encoding`.
pub fn accepts_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        is_gzip && !is_refused
    })
}

/// Names the program's pages: an open page of another program asks to be loaded again.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        ASSETS.iter().for_each(|asset| asset.text.hash(&mut hasher));
        format!("{:x}", hasher.finish())
    });
    &VERSION
}

/// Where a file is served. The version lets browsers keep it for good.
pub fn path(name: &str) -> String {
    format!("/assets/{name}?v={}", version())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_packed_is_the_file() {
        for asset in ASSETS {
            let mut text = String::new();
            flate2::read::GzDecoder::new(&packed(asset)[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text, asset.text, "{}", asset.name);
        }
    }

    #[test]
    fn only_who_takes_gzip_gets_it() {
        for yes in ["gzip", "br, gzip", "deflate, GZIP;q=0.5"] {
            assert!(accepts_gzip(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"] {
            assert!(!accepts_gzip(no), "{no}");
        }
    }
}
