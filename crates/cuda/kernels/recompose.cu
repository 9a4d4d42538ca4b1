// Words from the diagonals of a product of digits: the sum of diagonal s times 2^(8s), mod 2^64.
//
// Columns of the product are pairs (outer, inner), such as an image and a pixel.

struct recompose {
    const int *sums;
    word *out;
    integer items, rows, columns;
    integer diagonals;
    integer sums_row, sums_item, sums_diagonal; // numbers between rows, items, diagonals
    integer columns_inner;
    integer out_item, out_row, out_outer; // words between items, rows, outer indices
    integer is_added; // whether the words are added to those in place
};

KERNEL recompose(struct recompose p)
{
    const integer at = THREAD;
    if (at >= p.items * p.rows * p.columns) return;
    const integer column = at % p.columns;
    const integer row = at / p.columns % p.rows;
    const integer item = at / (p.columns * p.rows);
    const int *sums = p.sums + item * p.sums_item + row * p.sums_row + column;
    word value = 0;
    for (integer diagonal = 0; diagonal < p.diagonals; diagonal++) {
        value += (word)(integer)sums[diagonal * p.sums_diagonal] << 8 * diagonal;
    }
    word *to = p.out + item * p.out_item + row * p.out_row +
               column / p.columns_inner * p.out_outer + column % p.columns_inner;
    *to = p.is_added ? *to + value : value;
}
