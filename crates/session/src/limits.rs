//! Range checks of operations' arguments, before the protocol asserts them.

use mpc::{Compared, Error, Result, Shift};

/// Checks a comparison's width in bits.
///
/// # Errors
/// `Misuse` unless it is 2 to 64.
pub fn comparison_width(width: usize) -> Result<usize> {
    if (2..=64).contains(&width) {
        return Ok(width);
    }
    Err(Error::misuse(format!(
        "a comparison has a width of 2 to 64 bits, not {width}"
    )))
}

/// Makes a comparison of `width` bits without its `dropped` low bits; guarded if `reach` is not 0.
///
/// # Errors
/// As [`comparison_width`], [`Compared::guarded`] and [`Compared::dropping`].
pub fn comparison(width: usize, reach: u32, dropped: u32) -> Result<Compared> {
    let compared = match reach {
        0 => Compared::proved(comparison_width(width)?),
        _ => Compared::guarded(width, reach)?,
    };
    compared.dropping(dropped)
}

/// Makes the truncation that drops `bits` bits; `None` for 0 bits.
///
/// # Errors
/// `Misuse` for more than 61.
pub fn truncation(bits: u32) -> Result<Option<Shift>> {
    match Shift::new(bits) {
        None if bits > 0 => Err(Error::misuse(format!(
            "truncation drops at most 61 bits, not {bits}"
        ))),
        shift => Ok(shift),
    }
}

/// A truncation of a product: the bits that it drops, and whether the product is promised to be
/// narrow.
pub type Truncation = (u32, bool);

/// Makes the truncation of a product; `None` for 0 bits.
///
/// # Errors
/// `Misuse` for more than 61 bits, and for a narrow product of which nothing would be left.
pub fn truncation_of_product((bits, is_narrow): Truncation) -> Result<Option<Shift>> {
    let shift = truncation(bits)?;
    if !is_narrow {
        return Ok(shift);
    }
    let narrow = |shift: Shift| {
        let most = Shift::NARROW - 1;
        let refused =
            || format!("truncation drops at most {most} bits of a narrow product, not {bits}");
        shift.of_narrow().ok_or_else(|| Error::misuse(refused()))
    };
    shift.map(narrow).transpose()
}

/// Checks a number of low bits.
///
/// # Errors
/// `Misuse` unless it is 1 to 64.
pub fn low_width(width: usize) -> Result<usize> {
    if (1..=64).contains(&width) {
        return Ok(width);
    }
    Err(Error::misuse(format!(
        "a ring element has 1 to 64 low bits, not {width}"
    )))
}
