//! A 64×64 bit matrix transposed in place by exchanging ever smaller off-diagonal blocks: first the
//! two of 32×32 bits, last the single bits (Warren, "Hacker's Delight", section 7-3).

/// Bit j of word i goes to bit i of word j.
pub(super) fn transpose(matrix: &mut [u64; 64]) {
    exchange::<32>(matrix, 0x0000_0000_ffff_ffff);
    exchange::<16>(matrix, 0x0000_ffff_0000_ffff);
    exchange::<8>(matrix, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(matrix, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(matrix, 0x3333_3333_3333_3333);
    exchange::<1>(matrix, 0x5555_5555_5555_5555);
}

/// Exchanges the off-diagonal `SIZE`×`SIZE` blocks of all `2·SIZE`×`2·SIZE` blocks on the diagonal
/// lattice; `low` marks the columns of the left ones.
fn exchange<const SIZE: usize>(matrix: &mut [u64; 64], low: u64) {
    for rows in matrix.chunks_exact_mut(2 * SIZE) {
        let (upper, lower) = rows.split_at_mut(SIZE);
        for (a, b) in upper.iter_mut().zip(lower) {
            let difference = (*a >> SIZE ^ *b) & low;
            *a ^= difference << SIZE;
            *b ^= difference;
        }
    }
}
