// Signed digits of words, as the rows of a panel.
//
// A panel holds a matrix of words as bytes. Its row r is the row of the matrix, once for each
// digit: block i holds digit i of all words, K-major. Each block has a multiple of 16 bytes. Right
// operands have their blocks in the opposite order. So the first s + 1 blocks of a left row and the
// last s + 1 of a right one meet in pairs of digits i and s - i: the inner product is diagonal s of
// the product.
//
// An element (row, depth) of the matrix is a word of the operand, or zero. Rows and places along
// the depth are triples (outer, line, column). A matrix has only the outer index of both. For
// unfolded images, a row is a pixel (image, y, x) and a place along the depth a tap (channel, y,
// x).

struct gather {
    const word *words;
    integer item_stride; // words between independent matrices
    integer row_lines, row_columns;
    integer depth_lines, depth_columns;
    integer row_stride, depth_stride; // words between outer indices
    // The line is line_step * row's line + line_dilation * depth's line - line_padding. Outside of
    // the height, the word is zero. Columns are alike.
    integer line_step, line_dilation, line_padding, height;
    integer column_step, column_dilation, column_padding, width;
};

struct decompose {
    struct gather from;
    signed char *panel;
    integer items, rows, depth;
    integer first_row, first_depth;
    integer panel_rows; // rows of an item in the panel
    integer digits;
    integer is_reversed;
    integer block; // bytes of a digit's block
    integer start; // of these words in a block
    integer is_row_fastest; // whether neighbouring threads take neighbouring rows
};

KERNEL decompose(struct decompose p)
{
    const integer groups = (p.depth + 15) / 16;
    const integer at = THREAD;
    if (at >= p.items * p.rows * groups) return;
    const integer item = at / (p.rows * groups);
    const integer within = at % (p.rows * groups);
    const integer row = p.is_row_fastest ? within % p.rows : within / groups;
    const integer group = p.is_row_fastest ? within / p.rows : within % groups;

    const integer whole_row = p.first_row + row;
    const integer row_column = whole_row % p.from.row_columns;
    const integer row_line = whole_row / p.from.row_columns % p.from.row_lines;
    const integer row_outer = whole_row / (p.from.row_columns * p.from.row_lines);
    const word *words = p.from.words + item * p.from.item_stride + row_outer * p.from.row_stride;
    const integer first_line = row_line * p.from.line_step - p.from.line_padding;
    const integer first_column = row_column * p.from.column_step - p.from.column_padding;

    const integer first = p.first_depth + group * 16;
    integer depth_column = first % p.from.depth_columns;
    integer depth_line = first / p.from.depth_columns % p.from.depth_lines;
    integer depth_outer = first / (p.from.depth_columns * p.from.depth_lines);

    word digits[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const integer line = first_line + depth_line * p.from.line_dilation;
        const integer column = first_column + depth_column * p.from.column_dilation;
        const int is_inside = group * 16 + i < p.depth && line >= 0 && line < p.from.height &&
                              column >= 0 && column < p.from.width;
        word value = 0;
        if (is_inside) {
            value = words[depth_outer * p.from.depth_stride + line * p.from.width + column];
        }
        // With c = 0x80 in each byte, value = (value + c) - c: each byte of the sum, minus 128, is
        // a digit. The carries are those of one addition.
        digits[i] = (value + 0x8080808080808080ull) ^ 0x8080808080808080ull;
        if (++depth_column == p.from.depth_columns) {
            depth_column = 0;
            if (++depth_line == p.from.depth_lines) {
                depth_line = 0;
                depth_outer++;
            }
        }
    }

    signed char *to = p.panel + (item * p.panel_rows + row) * p.digits * p.block;
    to += p.start + group * 16;
    for (integer digit = 0; digit < p.digits; digit++) {
        unsigned int bytes[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bytes[i] = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                bytes[i] |= (unsigned int)(digits[4 * i + j] >> 8 * digit & 255) << 8 * j;
            }
        }
        STORE_16(to + (p.is_reversed ? p.digits - 1 - digit : digit) * p.block, bytes);
    }
}
