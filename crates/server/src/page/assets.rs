//! The style sheet, the scripts and the icon: parts of the program, served under a name that changes with them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

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
