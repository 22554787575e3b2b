//! The binary format for data that the launcher and the inner helper exchange: a sequence of numbers and byte strings.
//! Both ends are the same program, so the format has no versions.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(crate) fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }

    pub(crate) fn list<'a>(&mut self, items: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.number(items.len() as u64);
        items.for_each(|item| self.bytes(item));
    }

    pub(crate) fn paths<'a>(&mut self, paths: impl ExactSizeIterator<Item = &'a PathBuf>) {
        self.list(paths.map(|path| path.as_os_str().as_bytes()));
    }
}

#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(crate) fn path(&mut self) -> Option<PathBuf> {
        Some(PathBuf::from(OsString::from_vec(self.bytes()?)))
    }

    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let length = self.number()?;
        (0..length).map(|_| item(self)).collect()
    }

    pub(crate) fn paths(&mut self) -> Option<Vec<PathBuf>> {
        self.list(Self::path)
    }
}
