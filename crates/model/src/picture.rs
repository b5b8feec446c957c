//! Pictures as providers take them: checked, scaled down, and in a format that all of them know.
//!
//! Invariants:
//! - What comes out can be decoded: a damaged picture in a context would make every later request fail.
//! - Bounded: the size of a file, its pixels and the memory for decoding each have a limit, and one picture is
//!   decoded at a time, because several at once would need that memory several times.
//! - The same bytes in give the same bytes out.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits};
use windlass_core::picture::{PictureData, PictureFormat};

/// The largest file that is looked at.
pub const MAX_FILE_BYTES: u64 = 20 << 20;

/// More pixels than the largest screens and most cameras have.
const MAX_PIXELS: u64 = 50_000_000;
/// Memory for decoding one picture; four bytes for each pixel, and some more.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// The longest edge that is sent. Providers scale larger ones down themselves, and bill or refuse the rest.
const MAX_EDGE: u32 = 1_568;
/// The most bytes that are sent of one picture; providers take at least three times as much, encoded.
const MAX_SENT_BYTES: usize = 1 << 20;
/// How good a JPEG is made: text in it stays readable.
const JPEG_QUALITY: u8 = 85;
/// How often a picture that has still too many bytes is scaled down further.
const SHRINK_ATTEMPTS: usize = 6;

/// Bounds the memory of the process: see above.
static DECODING: Mutex<()> = Mutex::new(());

/// Why something cannot be shown as a picture. Follows the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("is not a PNG, JPEG, GIF or WebP picture")]
    NotAPicture,
    #[error("is a picture of {} MiB, and at most {} MiB are taken", bytes.div_ceil(1 << 20), MAX_FILE_BYTES >> 20)]
    TooLarge { bytes: u64 },
    #[error("is a picture of {width}×{height} pixels, and at most {} million are taken", MAX_PIXELS / 1_000_000)]
    TooManyPixels { width: u32, height: u32 },
    #[error("is a picture that needs too much memory to be decoded")]
    TooMuchMemory,
    #[error("is a picture that is damaged: {0}")]
    Damaged(String),
}

/// Whether bytes begin like a picture of a kind that can be shown.
pub fn looks_like_picture(head: &[u8]) -> bool {
    format_of(head).is_some()
}

/// Checks a picture and makes it as small as providers take it. One that is small enough stays byte for byte.
pub fn prepare(bytes: &[u8]) -> Result<PictureData, PictureError> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(PictureError::TooLarge { bytes: bytes.len() as u64 });
    }
    let format = format_of(bytes).ok_or(PictureError::NotAPicture)?;
    let _turn = DECODING.lock().unwrap_or_else(PoisonError::into_inner);
    // The bytes come from anywhere, and the decoders are not ours: one that panics has found a damaged picture.
    catch_unwind(AssertUnwindSafe(|| decode_and_fit(bytes, format)))
        .unwrap_or_else(|_| Err(PictureError::Damaged("it cannot be decoded".to_owned())))
}

fn format_of(head: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(head).ok()?;
    let known = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
    known.contains(&format).then_some(format)
}

fn decode_and_fit(bytes: &[u8], format: ImageFormat) -> Result<PictureData, PictureError> {
    let (image, is_upright) = decode(bytes, format)?;
    let (width, height) = (image.width(), image.height());
    let kept = match format {
        ImageFormat::Png => Some(PictureFormat::Png),
        ImageFormat::Jpeg => Some(PictureFormat::Jpeg),
        _ => None,
    };
    let is_small = width.max(height) <= MAX_EDGE && bytes.len() <= MAX_SENT_BYTES;
    match kept.filter(|_| is_small && is_upright) {
        Some(format) => Ok(PictureData { format, width, height, bytes: bytes.to_owned() }),
        None => fit(image, format),
    }
}

/// Decodes a picture, upright, and says whether it was stored so.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, bool), PictureError> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(picture_error)?;
    let (width, height) = decoder.dimensions();
    // Read from the header, before there is memory for a single pixel.
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PictureError::TooManyPixels { width, height });
    }
    limits.reserve(decoder.total_bytes()).map_err(picture_error)?;
    decoder.set_limits(limits).map_err(picture_error)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(picture_error)?;
    image.apply_orientation(orientation);
    Ok((image, orientation == Orientation::NoTransforms))
}

fn picture_error(error: ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooMuchMemory,
        other => PictureError::Damaged(windlass_core::text::one_line(&other.to_string(), 200)),
    }
}

/// Encodes a picture within the limits: as PNG where that is small enough, else as JPEG, else smaller.
fn fit(image: DynamicImage, from: ImageFormat) -> Result<PictureData, PictureError> {
    let mut image = scaled(image, MAX_EDGE);
    for _ in 0..SHRINK_ATTEMPTS {
        // A photograph as PNG is several times as large as before.
        if from != ImageFormat::Jpeg
            && let Some(data) = encode(&image, PictureFormat::Png)?
        {
            return Ok(data);
        }
        if let Some(data) = encode(&image, PictureFormat::Jpeg)? {
            return Ok(data);
        }
        let edge = image.width().max(image.height()) * 3 / 4;
        image = scaled(image, edge.max(1));
    }
    Err(PictureError::TooMuchMemory)
}

fn scaled(image: DynamicImage, edge: u32) -> DynamicImage {
    match image.width().max(image.height()) > edge {
        true => image.resize(edge, edge, FilterType::CatmullRom),
        false => image,
    }
}

/// A picture in a format; `None` where it has too many bytes.
fn encode(
    image: &DynamicImage,
    format: PictureFormat,
) -> Result<Option<PictureData>, PictureError> {
    let mut bytes = Vec::new();
    let encoded = match format {
        PictureFormat::Png => {
            let (compression, filter) = (CompressionType::Fast, PngFilter::Adaptive);
            let encoder = PngEncoder::new_with_quality(&mut bytes, compression, filter);
            match image.color().has_alpha() {
                true => image.to_rgba8().write_with_encoder(encoder),
                false => image.to_rgb8().write_with_encoder(encoder),
            }
        }
        PictureFormat::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
            on_white(image).write_with_encoder(encoder)
        }
    };
    encoded.map_err(picture_error)?;
    let (width, height) = (image.width(), image.height());
    let fits = bytes.len() <= MAX_SENT_BYTES;
    Ok(fits.then_some(PictureData { format, width, height, bytes }))
}

/// A picture without transparency, which JPEG does not have.
fn on_white(image: &DynamicImage) -> image::RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let source = image.to_rgba8();
    image::RgbImage::from_fn(source.width(), source.height(), |x, y| {
        let [red, green, blue, alpha] = source.get_pixel(x, y).0;
        let blend = |value: u8| {
            let (value, alpha) = (u32::from(value), u32::from(alpha));
            ((value * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        image::Rgb([blend(red), blend(green), blend(blue)])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let image = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x as u8, y as u8, (x * y) as u8])
        });
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::from(image).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_small_picture_stays_byte_for_byte() {
        for (format, kept) in
            [(ImageFormat::Png, PictureFormat::Png), (ImageFormat::Jpeg, PictureFormat::Jpeg)]
        {
            let bytes = encoded(40, 30, format);
            let data = prepare(&bytes).unwrap();
            assert_eq!((data.format, data.width, data.height), (kept, 40, 30));
            assert_eq!(data.bytes, bytes);
        }
    }

    #[test]
    fn what_not_every_provider_takes_is_converted() {
        for format in [ImageFormat::Gif, ImageFormat::WebP] {
            let data = prepare(&encoded(40, 30, format)).unwrap();
            assert_eq!((data.format, data.width, data.height), (PictureFormat::Png, 40, 30));
            assert!(data.bytes.starts_with(b"\x89PNG"));
        }
    }

    #[test]
    fn a_large_picture_is_scaled_down_and_keeps_its_proportions() {
        let data = prepare(&encoded(3_136, 784, ImageFormat::Png)).unwrap();
        assert_eq!((data.width, data.height), (1_568, 392));
        assert!(data.bytes.len() <= MAX_SENT_BYTES);
        assert_eq!(prepare(&data.bytes).unwrap(), data, "scaled once is enough");
    }

    #[test]
    fn a_picture_of_noise_has_few_bytes_all_the_same() {
        let mut seed = 1_u32;
        let noise = image::RgbImage::from_fn(1_000, 1_000, |_, _| {
            let mut next = || {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            };
            image::Rgb([next(), next(), next()])
        });
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::from(noise).write_to(&mut bytes, ImageFormat::Png).unwrap();
        let data = prepare(&bytes.into_inner()).unwrap();
        assert_eq!(data.format, PictureFormat::Jpeg);
        assert!(data.bytes.len() <= MAX_SENT_BYTES, "{}", data.bytes.len());
    }

    /// The header of a PNG that says it has so many pixels, and nothing else.
    fn bomb(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = encoded(1, 1, ImageFormat::Png);
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        let mut crc = !0_u32;
        for byte in &bytes[12..29] {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        bytes[29..33].copy_from_slice(&(!crc).to_be_bytes());
        bytes
    }

    #[test]
    fn what_cannot_be_shown_is_refused_with_the_reason() {
        let problem = |bytes: &[u8]| prepare(bytes).unwrap_err().to_string();
        let png = encoded(40, 30, ImageFormat::Png);
        assert_eq!(problem(b"hello"), "is not a PNG, JPEG, GIF or WebP picture");
        assert_eq!(problem(b""), "is not a PNG, JPEG, GIF or WebP picture");
        assert!(problem(&png[..png.len() / 2]).starts_with("is a picture that is damaged: "));
        let much = vec![0; MAX_FILE_BYTES as usize + 1];
        assert_eq!(problem(&much), "is a picture of 21 MiB, and at most 20 MiB are taken");
        let pixels = "is a picture of 60000×60000 pixels, and at most 50 million are taken";
        assert_eq!(problem(&bomb(60_000, 60_000)), pixels);
        assert!(problem(&bomb(5_000, 5_000)).starts_with("is a picture that is damaged: "));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_make_it_panic(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
            which in 0_usize..4,
        ) {
            let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
            let mut bytes = encoded(20, 10, formats[which]);
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            let _ = prepare(&bytes);
        }
    }
}
