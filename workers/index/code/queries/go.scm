(call_expression function: [(identifier) (selector_expression)] @call)
(call_expression function: (parenthesized_expression (selector_expression) @call))
(composite_literal type: [(type_identifier) (qualified_type)] @call)
(argument_list (identifier) @value)
(argument_list (selector_expression) @value)
(keyed_element (literal_element (identifier) @value))
(field_declaration !name type: (_) @base)
(type_elem (_) @base)
[(type_identifier) (qualified_type)] @type
(parameter_declaration name: (identifier) @name type: (_) @as)
(field_declaration name: (field_identifier) @field type: (_) @as)
(var_spec name: (identifier) @name type: (_) @as)
(short_var_declaration left: (expression_list . (identifier) @name) right: (expression_list . [(call_expression) (composite_literal) (unary_expression operand: (composite_literal))] @from))
(assignment_statement left: (expression_list . [(identifier) (selector_expression)] @name) right: (expression_list . [(call_expression) (composite_literal) (unary_expression operand: (composite_literal)) (identifier)] @from))
(function_declaration result: (_) @returns)
(method_declaration result: (_) @returns)
(import_spec) @import
[(function_declaration) (method_declaration) (type_spec) (type_alias) (method_elem)] @definition
