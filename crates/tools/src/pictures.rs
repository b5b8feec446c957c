//! Taking in the pictures that tools come across.

use windlass_core::picture::Picture;
use windlass_core::text::with_causes;
use windlass_model::picture;
use windlass_store::Pictures;

/// Checks a picture, scales it down and keeps it; else says why not, in words that follow its name.
pub(crate) fn keep_picture(
    pictures: &Pictures,
    bytes: &[u8],
    name: &str,
) -> Result<Picture, String> {
    let data = picture::prepare(bytes).map_err(|error| error.to_string())?;
    let kept = pictures.keep(&data, name);
    kept.map_err(|error| format!("is a picture that could not be kept: {}", with_causes(&error)))
}
