//! Pictures that people attach to goals and messages.

use std::path::Path;

use windlass_core::picture::Picture;
use windlass_core::shown::shown_line;
use windlass_model::picture::{self, PictureError};

use crate::{Coordinator, Error};

pub use windlass_model::picture::{MAX_FILE_BYTES, looks_like_picture};

/// Pictures that one goal or message can show.
pub const MAX_ATTACHED: usize = 10;

/// Files with these endings are pictures, or somebody should know that they are not.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Whether a file is a picture by its name.
pub fn is_named_like_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    PICTURES.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

/// Pictures that people attach.
#[derive(Clone, Copy)]
pub struct Pictures<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Pictures<'_> {
    /// Checks a picture, makes it as small as providers take it, and keeps it. A goal or a message can name it then.
    pub fn keep(self, bytes: &[u8], name: &str) -> Result<Picture, Error> {
        let data = picture::prepare(bytes)
            .map_err(|problem| Error::Picture { name: shown_line(name), problem })?;
        Ok(self.coordinator.store.pictures().keep(&data, name)?)
    }

    /// The same for a file; one that is too large is not read.
    pub fn keep_file(self, path: &Path, name: &str) -> Result<Picture, Error> {
        let failed = |source: std::io::Error| windlass_store::Error::File {
            path: path.to_owned(),
            source: source.into(),
        };
        let found = std::fs::metadata(path).map_err(failed)?;
        if !found.is_file() {
            return Err(failed(std::io::Error::other("it is not a regular file")).into());
        }
        let bytes = found.len();
        if bytes > MAX_FILE_BYTES {
            let problem = PictureError::TooLarge { bytes };
            return Err(Error::Picture { name: shown_line(name), problem });
        }
        self.keep(&std::fs::read(path).map_err(failed)?, name)
    }

    /// The bytes of a picture that is kept, to show it; `None` when they are gone.
    pub fn read(self, picture: &Picture) -> Option<Vec<u8>> {
        self.coordinator.store.pictures().read(picture)
    }
}
