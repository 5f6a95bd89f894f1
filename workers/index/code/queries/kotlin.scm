(call_expression . [(identifier) (navigation_expression)] @call)
(annotation [(user_type) (constructor_invocation)] @call)
(value_argument (identifier) @value)
(delegation_specifier [(user_type) (constructor_invocation (user_type))] @base)
(user_type) @type
(parameter (identifier) @name (user_type) @as)
(class_parameter (identifier) @field (user_type) @as)
(property_declaration (variable_declaration (identifier) @name (user_type) @as))
(property_declaration (variable_declaration . (identifier) @name .) (call_expression) @from)
(function_declaration (function_value_parameters) . (user_type) @returns)
[(import) (package_header)] @import
[(class_declaration) (object_declaration) (function_declaration) (type_alias)] @definition
(modifiers (annotation) @decorator)
