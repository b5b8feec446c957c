//! Pictures to show to models.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

/// A PNG of one colour. `number` makes it differ from others.
pub fn png(width: u32, height: u32, number: u8) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let image = RgbImage::from_pixel(width, height, Rgb([number, 80, 160]));
    image.write_to(&mut bytes, ImageFormat::Png).expect("a small picture can be encoded");
    bytes.into_inner()
}

/// A small PNG whose header says that it has 3.6 billion pixels.
pub fn bomb() -> Vec<u8> {
    let mut bytes = png(1, 1, 0);
    bytes[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let crc = !bytes[12..29].iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    bytes
}
