//! Writes and reads the fields of a value, big-endian.

use super::Unreadable;

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub(in super::super) struct Writer(Vec<u8>);

impl Writer {
    pub(in super::super) fn done(self) -> Vec<u8> {
        self.0
    }

    pub(in super::super) fn raw(&mut self, bytes: &[u8]) -> &mut Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(in super::super) fn u8(&mut self, value: u8) -> &mut Writer {
        self.raw(&[value])
    }

    pub(in super::super) fn u16(&mut self, value: usize) -> &mut Writer {
        self.raw(&u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes())
    }

    pub(in super::super) fn u32(&mut self, value: u32) -> &mut Writer {
        self.raw(&value.to_be_bytes())
    }

    pub(in super::super) fn f64(&mut self, value: f64) -> &mut Writer {
        self.raw(&value.to_be_bytes())
    }

    /// A text of at most 255 bytes.
    pub(in super::super) fn short(&mut self, bytes: &[u8]) -> &mut Writer {
        debug_assert!(bytes.len() < 256, "names are short");
        self.u8(u8::try_from(bytes.len()).unwrap_or(u8::MAX)).raw(bytes)
    }

    /// A text of less than 64 KiB.
    pub(in super::super) fn long(&mut self, bytes: &[u8]) -> &mut Writer {
        debug_assert!(bytes.len() < 65_536, "texts are limited");
        self.u16(bytes.len()).raw(bytes)
    }

    pub(in super::super) fn maybe_text(&mut self, text: Option<&str>) -> &mut Writer {
        match text {
            Some(text) => self.u8(1).long(text.as_bytes()),
            None => self.u8(0),
        }
    }

    pub(in super::super) fn maybe_u32(&mut self, value: Option<u32>) -> &mut Writer {
        match value {
            Some(value) => self.u8(1).u32(value),
            None => self.u8(0),
        }
    }

    pub(in super::super) fn maybe_f64(&mut self, value: Option<f64>) -> &mut Writer {
        match value {
            Some(value) => self.u8(1).f64(value),
            None => self.u8(0),
        }
    }
}

/// Reads fields one after the other.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Reader<'v>(pub(in super::super) &'v [u8]);

type Read<T> = Result<T, Unreadable>;

impl<'v> Reader<'v> {
    pub(in super::super) fn raw(&mut self, count: usize) -> Read<&'v [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(Unreadable("a value that ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.raw(N)?.try_into().map_err(|_| Unreadable("a value that ends early"))
    }

    pub(in super::super) fn u8(&mut self) -> Read<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(in super::super) fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(in super::super) fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(in super::super) fn f64(&mut self) -> Read<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// A number that is never negative.
    pub(in super::super) fn whole(&mut self) -> Read<u64> {
        let value = self.f64()?;
        if value < 0.0 || value.fract() != 0.0 {
            return Err(Unreadable("a number"));
        }
        Ok(value as u64)
    }

    pub(in super::super) fn id(&mut self) -> Read<[u8; 16]> {
        self.array()
    }

    pub(in super::super) fn short(&mut self) -> Read<&'v [u8]> {
        let count = self.u8()?;
        self.raw(count.into())
    }

    pub(in super::super) fn long(&mut self) -> Read<&'v [u8]> {
        let count = self.u16()?;
        self.raw(count.into())
    }

    pub(in super::super) fn maybe_text(&mut self) -> Read<Option<&'v str>> {
        if self.u8()? == 0 {
            return Ok(None);
        }
        std::str::from_utf8(self.long()?).map(Some).map_err(|_| Unreadable("a text"))
    }

    pub(in super::super) fn maybe_u32(&mut self) -> Read<Option<u32>> {
        if self.u8()? == 0 { Ok(None) } else { self.u32().map(Some) }
    }

    pub(in super::super) fn maybe_f64(&mut self) -> Read<Option<f64>> {
        if self.u8()? == 0 { Ok(None) } else { self.f64().map(Some) }
    }
}
