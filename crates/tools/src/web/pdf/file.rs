//! The objects of a file, its streams and its pages.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::ops::Range;

use super::object::{Dictionary, Object, Reader, is_space};

/// How large one stream may become; pages are far smaller.
const MAX_STREAM_BYTES: u64 = 16 << 20;
/// How much all streams may become that are asked for, each time they are: one small stream may be named by
/// every page a thousand times.
const MAX_UNPACKED_BYTES: u64 = 32 << 20;
/// How many objects are taken in.
const MAX_OBJECTS: usize = 200_000;
/// How many trailers are; a file has one for each time it was saved.
const MAX_TRAILERS: usize = 1_000;
/// How many pages are read.
const MAX_PAGES: usize = 2_000;
/// How deep the tree of pages, or a chain of references, may be.
const MAX_STEPS: usize = 32;

/// A file's objects by number.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    objects: BTreeMap<u32, (Object, Option<Range<usize>>)>,
    trailers: Vec<Dictionary>,
    /// Bytes of streams that may still be unpacked.
    room: Cell<u64>,
}

/// A page's dictionary with the resources in force.
pub(super) struct Page<'a> {
    pub dictionary: &'a Dictionary,
    pub resources: &'a Dictionary,
}

static NO_RESOURCES: Dictionary = Dictionary::new();

impl<'a> File<'a> {
    /// WebTool through the whole file. Of two objects with one number the later counts.
    pub fn scan(bytes: &'a [u8]) -> Self {
        let room = Cell::new(MAX_UNPACKED_BYTES);
        let mut file = Self { bytes, objects: BTreeMap::new(), trailers: Vec::new(), room };
        let mut at = 0;
        while let Some(found) = find(bytes, b"obj", at) {
            at = found + 3;
            let Some(number) = number_before(&bytes[..found]) else { continue };
            let mut reader = Reader::new(bytes, at);
            let Some(object) = reader.next() else { continue };
            let stream = stream_at(bytes, reader.at, &object);
            at = stream.as_ref().map_or(reader.at, |stream| stream.end).max(at);
            if file.objects.len() < MAX_OBJECTS {
                file.objects.insert(number, (object, stream));
            }
        }
        let mut at = 0;
        while let Some(found) = find(bytes, b"trailer", at) {
            let mut reader = Reader::new(bytes, found + 7);
            if let Some(Object::Dictionary(trailer)) = reader.next() {
                file.trailers.push(trailer);
            }
            // What was read is not read again, or a file of nothing else would take for ever.
            at = reader.at;
            if file.trailers.len() >= MAX_TRAILERS {
                break;
            }
        }
        file.unpack();
        file
    }

    /// Takes in what object streams hold.
    fn unpack(&mut self) {
        let packed = |(object, _): &(Object, _)| {
            object.dictionary().is_some_and(|d| is(d, "Type", "ObjStm"))
        };
        let streams: Vec<u32> = self
            .objects
            .iter()
            .filter(|(_, object)| packed(object))
            .map(|(number, _)| *number)
            .collect();
        for number in streams {
            let Some(bytes) = self.stream(&Object::Reference(number)) else { continue };
            let count = |key: &str| -> Option<usize> {
                let dictionary = self.objects.get(&number)?.0.dictionary()?;
                Some(dictionary.get(key)?.number()? as usize)
            };
            let (Some(count), Some(first)) = (count("N"), count("First")) else { continue };
            let mut reader = Reader::new(&bytes, 0);
            for _ in 0..count.min(MAX_OBJECTS) {
                let mut whole = || Some(reader.next()?.number()? as usize);
                let (Some(number), Some(offset)) = (whole(), whole()) else { break };
                let at = first.saturating_add(offset);
                let Some(object) =
                    (at < bytes.len()).then(|| Reader::new(&bytes, at).next()).flatten()
                else {
                    continue;
                };
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                if self.objects.len() < MAX_OBJECTS {
                    self.objects.entry(number).or_insert((object, None));
                }
            }
        }
    }

    pub fn is_encrypted(&self) -> bool {
        let tables = self.objects.values().filter_map(|(object, _)| object.dictionary());
        let tables = tables.filter(|dictionary| is(dictionary, "Type", "XRef"));
        self.trailers.iter().chain(tables).any(|trailer| trailer.contains_key("Encrypt"))
    }

    /// What an object is, references followed.
    pub fn resolve<'o>(&'o self, mut object: &'o Object) -> &'o Object {
        for _ in 0..MAX_STEPS {
            let Object::Reference(number) = object else { return object };
            match self.objects.get(number) {
                Some((found, _)) => object = found,
                None => return &Object::Null,
            }
        }
        &Object::Null
    }

    /// A dictionary's entry, references followed.
    pub fn get<'o>(&'o self, dictionary: &'o Dictionary, key: &str) -> &'o Object {
        dictionary.get(key).map_or(&Object::Null, |object| self.resolve(object))
    }

    /// A dictionary in a dictionary.
    pub fn inner<'o>(&'o self, dictionary: &'o Dictionary, key: &str) -> Option<&'o Dictionary> {
        self.get(dictionary, key).dictionary()
    }

    /// The content of the stream that a reference leads to; `None` where it cannot be unpacked.
    pub fn stream(&self, reference: &Object) -> Option<Vec<u8>> {
        let Object::Reference(number) = reference else { return None };
        let (object, range) = self.objects.get(number)?;
        let raw = self.bytes.get(range.clone()?)?;
        if raw.len() as u64 > self.room.get() {
            return None;
        }
        let mut bytes = raw.to_vec();
        let filters = match self.get(object.dictionary()?, "Filter") {
            Object::Array(filters) => filters.clone(),
            Object::Null => Vec::new(),
            one => vec![one.clone()],
        };
        for filter in &filters {
            bytes = match self.resolve(filter).name()? {
                "FlateDecode" | "Fl" => inflated(&bytes, self.room.get()),
                "ASCIIHexDecode" | "AHx" => {
                    let text = [b"<", bytes.as_slice()].concat();
                    match Reader::new(&text, 0).next()? {
                        Object::Text(bytes) => bytes,
                        _ => return None,
                    }
                }
                _ => return None,
            };
        }
        self.room.set(self.room.get().saturating_sub(bytes.len() as u64));
        Some(bytes)
    }

    /// The pages in reading order; by number where the tree is broken.
    pub fn pages(&self) -> Vec<Page<'_>> {
        let dictionaries = || self.objects.values().filter_map(|(object, _)| object.dictionary());
        let catalog = dictionaries().find(|dictionary| is(dictionary, "Type", "Catalog"));
        let mut pages = Vec::new();
        if let Some(root) = catalog.and_then(|catalog| catalog.get("Pages")) {
            self.climb(root, &NO_RESOURCES, 0, &mut BTreeSet::new(), &mut pages);
        }
        if pages.is_empty() {
            let found = dictionaries().filter(|dictionary| is(dictionary, "Type", "Page"));
            pages.extend(found.take(MAX_PAGES).map(|dictionary| Page {
                resources: self.inner(dictionary, "Resources").unwrap_or(&NO_RESOURCES),
                dictionary,
            }));
        }
        pages
    }

    fn climb<'o>(
        &'o self,
        node: &'o Object,
        inherited: &'o Dictionary,
        depth: usize,
        seen: &mut BTreeSet<u32>,
        pages: &mut Vec<Page<'o>>,
    ) {
        let fresh = match node {
            Object::Reference(number) => seen.insert(*number),
            _ => true,
        };
        let Some(dictionary) = self.resolve(node).dictionary() else { return };
        if !fresh || depth > MAX_STEPS || pages.len() >= MAX_PAGES {
            return;
        }
        let resources = self.inner(dictionary, "Resources").unwrap_or(inherited);
        match self.get(dictionary, "Kids") {
            Object::Array(kids) => {
                for kid in kids {
                    self.climb(kid, resources, depth + 1, seen, pages);
                }
            }
            _ => pages.push(Page { dictionary, resources }),
        }
    }
}

pub(super) fn is(dictionary: &Dictionary, key: &str, name: &str) -> bool {
    dictionary.get(key).and_then(Object::name) == Some(name)
}

fn find(bytes: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(word.len()).position(|window| window == word).map(|at| from + at)
}

/// The object's number in `12 0 obj`, read backwards from `obj`.
fn number_before(before: &[u8]) -> Option<u32> {
    let trimmed =
        |bytes: &[u8]| bytes.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
    let digits = |bytes: &[u8]| {
        bytes.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1)
    };
    let generation_end = trimmed(before);
    let generation = digits(&before[..generation_end]);
    let number_end = trimmed(&before[..generation]);
    let number = digits(&before[..number_end]);
    if generation == generation_end || number_end == generation {
        return None;
    }
    std::str::from_utf8(&before[number..number_end]).ok()?.parse().ok()
}

/// The bytes of a stream that follows its dictionary.
fn stream_at(bytes: &[u8], at: usize, object: &Object) -> Option<Range<usize>> {
    let dictionary = object.dictionary()?;
    let rest = bytes.get(at..)?;
    let skipped = rest.iter().position(|&byte| !is_space(byte))?;
    let rest = rest[skipped..].strip_prefix(b"stream")?;
    let newline = match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => 0,
    };
    let start = bytes.len() - rest.len() + newline;
    let stated = dictionary.get("Length").and_then(Object::number).map(|length| length as usize);
    let stated = stated.and_then(|length| start.checked_add(length)).filter(|&end| {
        let behind = bytes.get(end..).unwrap_or_default();
        let behind = &behind[behind.iter().position(|&b| !is_space(b)).unwrap_or(behind.len())..];
        behind.starts_with(b"endstream")
    });
    let end = stated.or_else(|| find(bytes, b"endstream", start)).unwrap_or(bytes.len());
    Some(start..end.max(start))
}

/// As much as can be unpacked: a cut stream still gives its beginning.
fn inflated(bytes: &[u8], room: u64) -> Vec<u8> {
    let mut whole = Vec::new();
    let limit = room.min(MAX_STREAM_BYTES);
    let _ = flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut whole);
    whole
}
