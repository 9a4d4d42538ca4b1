"""ONNX's own tests of nodes that do not pass, by reason; written by
tests/compilation/onnx_survey.py. A test that begins to pass has to leave the list."""

GAPS: dict[str, str] = {
    "Blocks of images in other than two dimensions.": """
        test_col2im_5d
    """,
    "Control flow that depends on secret values, and Scan.": """
        test_if test_linear_attention_decode_step_expanded test_linear_attention_delta_expanded
        test_linear_attention_explicit_scale_expanded test_linear_attention_fp16_expanded
        test_linear_attention_gated_delta_beta_scalar_expanded test_linear_attention_gated_delta_expanded
        test_linear_attention_gated_delta_gqa_expanded test_linear_attention_gated_delta_mqa_expanded
        test_linear_attention_gated_expanded test_linear_attention_gated_per_head_decay_expanded
        test_linear_attention_linear_expanded test_linear_attention_linear_t1_no_past_expanded
        test_linear_attention_no_past_explicit_zeros_expanded
        test_linear_attention_prefill_with_past_expanded test_loop11 test_scan9_multi_state
        test_scan9_scalar test_scan9_sum
    """,
    "Images in files.": """
        test_image_decoder_decode_bmp_rgb test_image_decoder_decode_jpeg2k_rgb
        test_image_decoder_decode_jpeg_bgr test_image_decoder_decode_jpeg_grayscale
        test_image_decoder_decode_jpeg_rgb test_image_decoder_decode_png_rgb
        test_image_decoder_decode_pnm_rgb test_image_decoder_decode_tiff_rgb
        test_image_decoder_decode_webp_rgb
    """,
    "Older than opset 13, or of other domains than ONNX's own.": """
        test_adagrad test_adagrad_multiple test_adam test_adam_multiple test_flexattention
        test_flexattention_causal_mask test_flexattention_diff_head_sizes test_flexattention_double
        test_flexattention_fp16 test_flexattention_gqa test_flexattention_prob_mod
        test_flexattention_relative_positional test_flexattention_scaled test_flexattention_score_mod
        test_flexattention_soft_cap test_momentum test_momentum_multiple test_nesterov_momentum
        test_scan_sum
    """,
    "Operators that are not imported.": """
        test_basic_deform_conv_with_padding test_basic_deform_conv_without_padding
        test_causal_conv_with_state_b1_c1_degenerate test_causal_conv_with_state_basic
        test_causal_conv_with_state_decode_step test_causal_conv_with_state_fp16
        test_causal_conv_with_state_kernel_size_one test_causal_conv_with_state_short_input_no_past_state
        test_causal_conv_with_state_silu test_causal_conv_with_state_silu_fp16
        test_causal_conv_with_state_silu_with_past_state test_causal_conv_with_state_swish_alias
        test_causal_conv_with_state_with_bias test_causal_conv_with_state_with_bias_and_past_state
        test_causal_conv_with_state_with_past_state test_deform_conv_with_mask_bias
        test_deform_conv_with_multiple_offset_groups test_linear_attention_decode_step
        test_linear_attention_delta test_linear_attention_explicit_scale test_linear_attention_fp16
        test_linear_attention_gated test_linear_attention_gated_delta
        test_linear_attention_gated_delta_beta_scalar test_linear_attention_gated_delta_gqa
        test_linear_attention_gated_delta_mqa test_linear_attention_gated_per_head_decay
        test_linear_attention_linear test_linear_attention_linear_t1_no_past
        test_linear_attention_no_past_explicit_zeros test_linear_attention_prefill_with_past
        test_roialign_aligned_false test_roialign_aligned_true test_roialign_mode_max
    """,
    "Random numbers, which each party would draw differently.": """
        test_bernoulli test_bernoulli_double test_bernoulli_double_expanded test_bernoulli_expanded
        test_bernoulli_seed test_bernoulli_seed_expanded
    """,
    "Rounding errors near 0 that the test expects.": """
        test_dft_inverse test_dft_inverse_opset19
    """,
    "Sequences and optional values.": """
        test_identity_opt test_identity_sequence test_if_opt test_if_seq test_loop13_seq
        test_loop16_seq_none test_optional_get_element_optional_sequence
        test_optional_get_element_optional_tensor test_optional_get_element_sequence
        test_optional_get_element_tensor test_optional_has_element_empty_no_input_name_optional_input
        test_optional_has_element_empty_no_input_name_tensor_input
        test_optional_has_element_empty_no_input_optional_input
        test_optional_has_element_empty_no_input_tensor_input test_optional_has_element_empty_optional_input
        test_optional_has_element_optional_input test_optional_has_element_tensor_input
        test_sequence_insert_at_back test_sequence_insert_at_front test_sequence_map_add_1_sequence_1_tensor
        test_sequence_map_add_1_sequence_1_tensor_expanded test_sequence_map_add_2_sequences
        test_sequence_map_add_2_sequences_expanded test_sequence_map_extract_shapes
        test_sequence_map_extract_shapes_expanded test_sequence_map_identity_1_sequence
        test_sequence_map_identity_1_sequence_1_tensor
        test_sequence_map_identity_1_sequence_1_tensor_expanded
        test_sequence_map_identity_1_sequence_expanded test_sequence_map_identity_2_sequences
        test_sequence_map_identity_2_sequences_expanded test_split_to_sequence_1 test_split_to_sequence_2
        test_split_to_sequence_nokeepdims
    """,
    "The bits of floating-point numbers, which secret numbers have not.": """
        test_bitcast_2d_float32_to_int32 test_bitcast_bool_to_uint8 test_bitcast_float32_to_int32
        test_bitcast_float64_to_int64 test_bitcast_int32_to_float32 test_bitcast_int64_to_float64
        test_bitcast_int8_to_uint8 test_bitcast_scalar_float32_to_int32
    """,
    "The shape of the result depends on data.": """
        test_nonmaxsuppression_center_point_box_format test_nonmaxsuppression_flipped_coordinates
        test_nonmaxsuppression_identical_boxes test_nonmaxsuppression_iou_threshold_boundary
        test_nonmaxsuppression_limit_output_size test_nonmaxsuppression_single_box
        test_nonmaxsuppression_suppress_by_IOU test_nonmaxsuppression_suppress_by_IOU_and_scores
        test_nonmaxsuppression_two_batches test_nonmaxsuppression_two_classes test_nonzero_example
        test_unique_bfloat16_sorted_without_axis test_unique_length_1 test_unique_not_sorted_without_axis
        test_unique_sorted_with_axis test_unique_sorted_with_axis_3d test_unique_sorted_with_negative_axis
        test_unique_sorted_without_axis
    """,
    "Training.": """
        test_batchnorm_epsilon_training_mode test_batchnorm_example_training_mode test_training_dropout
        test_training_dropout_default test_training_dropout_default_mask test_training_dropout_mask
        test_training_dropout_zero_ratio test_training_dropout_zero_ratio_mask
    """,
    "Types of less than a byte, and floating-point numbers of one.": """
        test_cast_FLOAT16_to_FLOAT4E2M1 test_cast_FLOAT16_to_FLOAT8E4M3FN
        test_cast_FLOAT16_to_FLOAT8E4M3FNUZ test_cast_FLOAT16_to_FLOAT8E5M2
        test_cast_FLOAT16_to_FLOAT8E5M2FNUZ test_cast_FLOAT16_to_INT2 test_cast_FLOAT16_to_INT4
        test_cast_FLOAT16_to_UINT2 test_cast_FLOAT16_to_UINT4 test_cast_FLOAT4E2M1_to_FLOAT
        test_cast_FLOAT4E2M1_to_FLOAT16 test_cast_FLOAT8E4M3FNUZ_to_FLOAT
        test_cast_FLOAT8E4M3FNUZ_to_FLOAT16 test_cast_FLOAT8E4M3FN_to_FLOAT
        test_cast_FLOAT8E4M3FN_to_FLOAT16 test_cast_FLOAT8E5M2FNUZ_to_FLOAT
        test_cast_FLOAT8E5M2FNUZ_to_FLOAT16 test_cast_FLOAT8E5M2_to_FLOAT test_cast_FLOAT8E5M2_to_FLOAT16
        test_cast_FLOAT_to_FLOAT4E2M1 test_cast_FLOAT_to_FLOAT8E4M3FN test_cast_FLOAT_to_FLOAT8E4M3FNUZ
        test_cast_FLOAT_to_FLOAT8E5M2 test_cast_FLOAT_to_FLOAT8E5M2FNUZ test_cast_FLOAT_to_INT2
        test_cast_FLOAT_to_INT4 test_cast_FLOAT_to_UINT2 test_cast_FLOAT_to_UINT4 test_cast_INT2_to_FLOAT
        test_cast_INT2_to_FLOAT16 test_cast_INT2_to_INT8 test_cast_INT4_to_FLOAT test_cast_INT4_to_FLOAT16
        test_cast_INT4_to_INT8 test_cast_UINT2_to_FLOAT test_cast_UINT2_to_FLOAT16 test_cast_UINT2_to_UINT8
        test_cast_UINT4_to_FLOAT test_cast_UINT4_to_FLOAT16 test_cast_UINT4_to_UINT8
        test_cast_e8m0_FLOAT16_to_FLOAT8E8M0 test_cast_e8m0_FLOAT8E8M0_to_FLOAT
        test_cast_e8m0_FLOAT8E8M0_to_FLOAT16 test_cast_e8m0_FLOAT_to_FLOAT8E8M0
        test_cast_no_saturate_FLOAT16_to_FLOAT8E4M3FN test_cast_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ
        test_cast_no_saturate_FLOAT16_to_FLOAT8E5M2 test_cast_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ
        test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ
        test_cast_no_saturate_FLOAT_to_FLOAT8E5M2 test_cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ
        test_castlike_FLOAT16_to_FLOAT4E2M1 test_castlike_FLOAT16_to_FLOAT4E2M1_expanded
        test_castlike_FLOAT16_to_FLOAT8E4M3FN test_castlike_FLOAT16_to_FLOAT8E4M3FNUZ
        test_castlike_FLOAT16_to_FLOAT8E4M3FNUZ_expanded test_castlike_FLOAT16_to_FLOAT8E4M3FN_expanded
        test_castlike_FLOAT16_to_FLOAT8E5M2 test_castlike_FLOAT16_to_FLOAT8E5M2FNUZ
        test_castlike_FLOAT16_to_FLOAT8E5M2FNUZ_expanded test_castlike_FLOAT16_to_FLOAT8E5M2_expanded
        test_castlike_FLOAT16_to_INT2 test_castlike_FLOAT16_to_INT2_expanded test_castlike_FLOAT16_to_INT4
        test_castlike_FLOAT16_to_INT4_expanded test_castlike_FLOAT16_to_UINT2
        test_castlike_FLOAT16_to_UINT2_expanded test_castlike_FLOAT16_to_UINT4
        test_castlike_FLOAT16_to_UINT4_expanded test_castlike_FLOAT4E2M1_to_FLOAT
        test_castlike_FLOAT4E2M1_to_FLOAT16 test_castlike_FLOAT4E2M1_to_FLOAT16_expanded
        test_castlike_FLOAT4E2M1_to_FLOAT_expanded test_castlike_FLOAT8E4M3FNUZ_to_FLOAT
        test_castlike_FLOAT8E4M3FNUZ_to_FLOAT16 test_castlike_FLOAT8E4M3FNUZ_to_FLOAT16_expanded
        test_castlike_FLOAT8E4M3FNUZ_to_FLOAT_expanded test_castlike_FLOAT8E4M3FN_to_FLOAT
        test_castlike_FLOAT8E4M3FN_to_FLOAT16 test_castlike_FLOAT8E4M3FN_to_FLOAT16_expanded
        test_castlike_FLOAT8E4M3FN_to_FLOAT_expanded test_castlike_FLOAT8E5M2FNUZ_to_FLOAT
        test_castlike_FLOAT8E5M2FNUZ_to_FLOAT16 test_castlike_FLOAT8E5M2FNUZ_to_FLOAT16_expanded
        test_castlike_FLOAT8E5M2FNUZ_to_FLOAT_expanded test_castlike_FLOAT8E5M2_to_FLOAT
        test_castlike_FLOAT8E5M2_to_FLOAT16 test_castlike_FLOAT8E5M2_to_FLOAT16_expanded
        test_castlike_FLOAT8E5M2_to_FLOAT_expanded test_castlike_FLOAT_to_FLOAT4E2M1
        test_castlike_FLOAT_to_FLOAT4E2M1_expanded test_castlike_FLOAT_to_FLOAT8E4M3FN
        test_castlike_FLOAT_to_FLOAT8E4M3FNUZ test_castlike_FLOAT_to_FLOAT8E4M3FNUZ_expanded
        test_castlike_FLOAT_to_FLOAT8E4M3FN_expanded test_castlike_FLOAT_to_FLOAT8E5M2
        test_castlike_FLOAT_to_FLOAT8E5M2FNUZ test_castlike_FLOAT_to_FLOAT8E5M2FNUZ_expanded
        test_castlike_FLOAT_to_FLOAT8E5M2_expanded test_castlike_FLOAT_to_INT2
        test_castlike_FLOAT_to_INT2_expanded test_castlike_FLOAT_to_INT4
        test_castlike_FLOAT_to_INT4_expanded test_castlike_FLOAT_to_UINT2
        test_castlike_FLOAT_to_UINT2_expanded test_castlike_FLOAT_to_UINT4
        test_castlike_FLOAT_to_UINT4_expanded test_castlike_INT2_to_FLOAT test_castlike_INT2_to_FLOAT16
        test_castlike_INT2_to_FLOAT16_expanded test_castlike_INT2_to_FLOAT_expanded
        test_castlike_INT2_to_INT8 test_castlike_INT2_to_INT8_expanded test_castlike_INT4_to_FLOAT
        test_castlike_INT4_to_FLOAT16 test_castlike_INT4_to_FLOAT16_expanded
        test_castlike_INT4_to_FLOAT_expanded test_castlike_INT4_to_INT8 test_castlike_INT4_to_INT8_expanded
        test_castlike_UINT2_to_FLOAT test_castlike_UINT2_to_FLOAT16 test_castlike_UINT2_to_FLOAT16_expanded
        test_castlike_UINT2_to_FLOAT_expanded test_castlike_UINT2_to_UINT8
        test_castlike_UINT2_to_UINT8_expanded test_castlike_UINT4_to_FLOAT test_castlike_UINT4_to_FLOAT16
        test_castlike_UINT4_to_FLOAT16_expanded test_castlike_UINT4_to_FLOAT_expanded
        test_castlike_UINT4_to_UINT8 test_castlike_UINT4_to_UINT8_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FN
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FN_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2 test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ
        test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2 test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ
        test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2_expanded test_dequantizelinear_e4m3fn
        test_dequantizelinear_e4m3fn_float16 test_dequantizelinear_e4m3fn_zero_point
        test_dequantizelinear_e5m2 test_dequantizelinear_float4e2m1 test_dequantizelinear_int2
        test_dequantizelinear_int4 test_dequantizelinear_uint2 test_dequantizelinear_uint4
        test_quantizelinear_e4m3fn test_quantizelinear_e5m2 test_quantizelinear_float4e2m1
        test_quantizelinear_int2 test_quantizelinear_int4 test_quantizelinear_uint2
        test_quantizelinear_uint4
    """,
    "Unsigned numbers of 16 bits and more.": """
        test_add_uint16 test_add_uint32 test_add_uint64 test_bitcast_uint16_to_int16
        test_bitcast_uint32_to_int32 test_bitshift_left_uint16 test_bitshift_left_uint32
        test_bitshift_left_uint64 test_bitshift_right_uint16 test_bitshift_right_uint32
        test_bitshift_right_uint64 test_bitwise_and_ui64_bcast_3v1d test_bitwise_not_3d
        test_bitwise_or_ui64_bcast_3v1d test_bitwise_xor_ui64_bcast_3v1d test_dequantizelinear_uint16
        test_div_uint16 test_div_uint32 test_div_uint64 test_equal_uint16 test_equal_uint32
        test_equal_uint64 test_greater_equal_uint16 test_greater_equal_uint16_expanded
        test_greater_equal_uint32 test_greater_equal_uint32_expanded test_greater_equal_uint64
        test_greater_equal_uint64_expanded test_greater_uint16 test_greater_uint32 test_greater_uint64
        test_less_equal_uint16 test_less_equal_uint16_expanded test_less_equal_uint32
        test_less_equal_uint32_expanded test_less_equal_uint64 test_less_equal_uint64_expanded
        test_less_uint16 test_less_uint32 test_less_uint64 test_max_uint16 test_max_uint32 test_max_uint64
        test_min_uint16 test_min_uint32 test_min_uint64 test_mod_uint16 test_mod_uint32 test_mod_uint64
        test_mul_uint16 test_mul_uint32 test_mul_uint64 test_pow_types_float32_uint32
        test_pow_types_float32_uint64 test_quantizelinear_uint16 test_sub_uint16 test_sub_uint32
        test_sub_uint64 test_top_k_uint64
    """,
    "Values rounded to 16 bits between steps.": """
        test_attention_3d_causal_bf16 test_attention_3d_causal_bf16_expanded
        test_attention_4d_attn_mask_causal_bf16 test_attention_4d_attn_mask_causal_bf16_expanded
        test_attention_4d_causal_bf16 test_attention_4d_causal_bf16_expanded
        test_attention_4d_causal_padded_kv_bf16 test_attention_4d_padded_kv_bf16
    """,
    "What shapes are made of depends on an input.": """
        test_attention_24_fullymasked_qk_matmul_output_mode3_zero_expanded
        test_attention_24_qk_matmul_output_mode3_softmax_precision_expanded
        test_attention_4d_causal_nonpad_attn_mask_composition_expanded
        test_attention_4d_causal_padded_kv_bf16_expanded
        test_attention_4d_diff_heads_mask4d_padded_kv_expanded test_attention_4d_padded_kv_bf16_expanded
        test_attention_causal_boolmask_nan_robustness_expanded
        test_attention_local_window_ext_cache_float16_mask_expanded
        test_attention_local_window_ext_cache_rank2_mask_expanded
        test_attention_local_window_ext_cache_rank3_head_mask_expanded
        test_attention_local_window_ext_cache_rank4_batch_mask_expanded
        test_attention_local_window_gqa_rank4_mask_expanded
        test_attention_local_window_rank1_boolean_mask_expanded test_upsample_nearest
    """,
    "Which of equals comes first is left open by PyTorch's topk.": """
        test_top_k_same_values test_top_k_same_values_2d test_top_k_same_values_largest
    """,
    "Words, which are nothing that is computed on in secret.": """
        test_ai_onnx_ml_label_encoder_string_int test_ai_onnx_ml_label_encoder_string_int_no_default
        test_ai_onnx_ml_label_encoder_tensor_mapping test_ai_onnx_ml_label_encoder_tensor_value_only_mapping
        test_equal_string test_equal_string_broadcast test_regex_full_match_basic
        test_regex_full_match_email_domain test_regex_full_match_empty test_string_concat
        test_string_concat_broadcasting test_string_concat_empty_string test_string_concat_utf8
        test_string_concat_zero_dimensional test_string_split_basic test_string_split_consecutive_delimiters
        test_string_split_empty_string_delimiter test_string_split_empty_tensor test_string_split_maxsplit
        test_string_split_no_delimiter test_strnormalizer_export_monday_casesensintive_lower
        test_strnormalizer_export_monday_casesensintive_nochangecase
        test_strnormalizer_export_monday_casesensintive_upper test_strnormalizer_export_monday_empty_output
        test_strnormalizer_export_monday_insensintive_upper_twodim
        test_strnormalizer_nostopwords_nochangecase test_tfidfvectorizer_tf_batch_onlybigrams_skip0
        test_tfidfvectorizer_tf_batch_onlybigrams_skip5 test_tfidfvectorizer_tf_batch_uniandbigrams_skip5
        test_tfidfvectorizer_tf_only_bigrams_skip0 test_tfidfvectorizer_tf_onlybigrams_levelempty
        test_tfidfvectorizer_tf_onlybigrams_skip5 test_tfidfvectorizer_tf_uniandbigrams_skip5
    """,
}
